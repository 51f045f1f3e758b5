"""Private models of latents of a public generator (Chen 2021, DPMI)."""
