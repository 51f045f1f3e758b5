"""Records stay with their owners: Flower carries questions to them, and answers back (docs/federated.md)."""
