"""A fit: its folder, its synthesizer, and what its rows are asked to be."""
