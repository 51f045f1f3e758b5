"""A GAN whose critic is trained by clipped, noised gradients (Frigerio 2019)."""
