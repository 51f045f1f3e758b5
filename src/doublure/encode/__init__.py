"""ENCODE: records as tensors under a resolved schema, and back."""
