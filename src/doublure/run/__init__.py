"""Runs: fitting, the run folder, the synthesizer, and conditions on samples."""
