"""Folders of CSV, JSON lines or Parquet files: each file is a part of its table, and snapshots are compared."""
