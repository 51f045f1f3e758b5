"""Small things that everybody may import: files, progress, stopping, seeds, YAML."""
