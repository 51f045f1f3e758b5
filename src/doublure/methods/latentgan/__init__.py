"""Latents of a public generator (Chen 2021, DPMI)."""
