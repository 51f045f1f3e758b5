"""Golden fits: what they are made of, and what is recorded and kept of them."""

from pathlib import Path

KEPT = Path(__file__).resolve().parents[2] / "golden" / "kept"
"""Where the suite's files lie."""
