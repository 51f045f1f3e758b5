"""How a generator is trained: one folder a method, named in :mod:`doublure.methods.registry`."""
