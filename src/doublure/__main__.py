"""``python -m doublure`` is ``doublure``."""

from doublure.cli import run

if __name__ == "__main__":
    run()
