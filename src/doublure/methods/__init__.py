"""How a generator is taught: one file a method, named in :mod:`doublure.methods.registry`."""
