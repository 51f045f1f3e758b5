"""Parts that methods share: jobs, settings, checkpoints, the GAN loop and a private classifier."""
