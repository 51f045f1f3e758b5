"""Tables in databases: addresses, connections, and statements whose cells never leave the database."""
