"""Timed relations on Delta tables: Spark or Arrow writes Parquet, delta-rs commits, the catalog pins versions."""

from rollview.store.buckets import BUCKET, Buckets, bucket_expression, bucket_sql
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder

__all__ = ["BUCKET", "Buckets", "DataFile", "DeltaFolder", "bucket_expression", "bucket_sql"]
