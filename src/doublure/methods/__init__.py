"""How a generator is trained: one file a method, named in :mod:`doublure.methods.registry`."""
