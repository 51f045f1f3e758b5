"""A private GAN with a further claim by the Bayesian accountant (Triastcyn & Faltings 2022)."""
