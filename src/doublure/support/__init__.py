"""Shared helpers: files, progress, stopping, seeds, messages, YAML."""
