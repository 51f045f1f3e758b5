"""LOAD: private tables under a schema, in canonical form."""
