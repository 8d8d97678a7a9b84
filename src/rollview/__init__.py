"""Incremental materialized views for Apache Spark."""
