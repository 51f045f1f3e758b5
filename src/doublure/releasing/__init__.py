"""Publishing a release, and verifying one: bundle, card, dictionary and signature."""
