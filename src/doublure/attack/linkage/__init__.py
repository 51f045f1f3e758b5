"""The regulators' three: singling out, linkability, inference (Article 29 Working Party, opinion 05/2014, WP216).

Each is measured as Giomi, Boenisch, Wehmeyer and Tasnádi (2023) do: the same attack on records that were never seen is
the control, guessing without the synthetic records is the baseline, and the risk is what is left above the control.
"""
