"""A private GAN that the Bayesian accountant prices, too (Triastcyn & Faltings 2022)."""
