"""Methods of training a generator, one folder each, listed in :mod:`doublure.methods.registry`."""
