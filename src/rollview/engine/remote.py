"""A session over Spark Connect, by its address.

Law: an address may carry a token, so only its host and port are ever told.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_module
from rollview.core.urls import NotUnderstoodUrlError, Url, parse_url
from rollview.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    import pyspark
    from pyspark import errors as spark_errors
    from pyspark.sql import SparkSession
else:
    pyspark = lazy_module("pyspark")
    spark_errors = lazy_module("pyspark.errors")

PORT = 15002
PATIENCE = 10.0


def connect(url: str, conf: Mapping[str, str]) -> SparkSession:
    """A new session on the server, with the settings that are given."""
    server = _parsed(url)
    _check_listening(server)
    try:
        session = pyspark.sql.SparkSession.builder.remote(url).create()
    except spark_errors.PySparkImportError as cause:
        raise EnvironmentFault(
            "Spark Connect needs Python packages that are not installed.", hint="pip install 'rollview[connect]'"
        ) from cause
    # Its message quotes the address.
    except spark_errors.PySparkValueError:
        raise _not_understood() from None
    for key, value in conf.items():
        if not session.conf.isModifiable(key):
            raise UsageError(
                f"The setting '{key}' belongs to the Spark Connect server at {_place(server)}.",
                hint="Set it where the server is started, and take it out of the 'spark' part of rollview.yaml.",
            )
        session.conf.set(key, value)
    return session


def _parsed(url: str) -> Url:
    """PySpark's own form: ``sc://host:port/;name=value;name=value``."""
    try:
        server = parse_url(url)
    except NotUnderstoodUrlError:
        raise _not_understood() from None
    if server.scheme != "sc" or not server.host or not (server.path == "" or server.path.startswith(";")):
        raise _not_understood()
    return server


def _check_listening(server: Url) -> None:
    """PySpark itself would try again for many minutes."""
    try:
        socket.create_connection((server.host, server.port or PORT), PATIENCE).close()
    except OSError as cause:
        raise EnvironmentFault(
            f"No Spark Connect server answers at {_place(server)}: {cause}.",
            hint="Start it, or correct 'remote' in the 'spark' part of rollview.yaml.",
        ) from cause


def _place(server: Url) -> str:
    return f"{server.host}:{server.port or PORT}"


def _not_understood() -> UsageError:
    return UsageError(
        "The address of a Spark Connect server begins with sc:// and names a host.",
        hint="Write sc://host:15002, and options behind a slash: sc://host:15002/;use_ssl=true.",
    )
