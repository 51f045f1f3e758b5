"""Federated fits: records stay with their owners, and Flower carries questions and answers (docs/federated.md)."""
