"""Containers of tables beside CSV and Parquet: one file each, found by a file's ending."""
