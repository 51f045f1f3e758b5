"""A GAN whose critic learns from clipped, noised gradients (Frigerio 2019)."""
