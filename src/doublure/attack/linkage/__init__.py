"""Linkage attacks named by the regulators: singling out, linkability, inference (WP29 opinion 05/2014, WP216).

Each is measured as Giomi, Boenisch, Wehmeyer and Tasnádi (2023) do. The same attack on unseen records is the control,
guessing without the synthetic records is the baseline, and the risk is the excess over the control.
"""
