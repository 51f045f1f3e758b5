"""A GAN whose critic has a noise layer (Triastcyn & Faltings 2018, 2019)."""
