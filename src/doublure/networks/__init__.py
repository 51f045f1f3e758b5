"""Plain torch modules; they know nothing of schemas, methods or privacy."""
