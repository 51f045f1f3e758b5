"""The baseline without privacy."""
