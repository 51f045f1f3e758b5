"""Test files of databases import ``worlds`` from beside them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module", autouse=True)
def _few_draws(few_draws):
    """Let fits rake few rows: none is held against the data that it was fitted to."""
