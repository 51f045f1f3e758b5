"""Statistics, refined by a private critic and a labeller."""
