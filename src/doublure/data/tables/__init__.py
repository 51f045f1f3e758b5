"""Tables: containers, cells under a schema, and how they are written."""
