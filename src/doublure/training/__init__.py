"""What methods share: jobs, settings, checkpoints, the loop of a GAN, a private classifier."""
