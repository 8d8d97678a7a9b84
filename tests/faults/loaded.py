"""Everything that a worker may need, loaded once by the process from which workers are forked.

Rooms load their modules when they are first asked for them, so each is named here.
"""

from __future__ import annotations

import importlib
import pkgutil

import deltalake
import pandas
import psycopg
import pyarrow.dataset
import pymysql
import pymysqlreplication
import pyspark.sql
import sqlglot

import rollview

__all__ = ["deltalake", "pandas", "psycopg", "pyarrow", "pymysql", "pymysqlreplication", "pyspark", "sqlglot"]

# migrations are run, not imported; the drivers of Kafka and the command line are not what a worker does
for _module in pkgutil.walk_packages(rollview.__path__, "rollview."):
    if not _module.name.startswith(("rollview.catalog.migrations", "rollview.cli", "rollview.sources.debezium")):
        importlib.import_module(_module.name)
