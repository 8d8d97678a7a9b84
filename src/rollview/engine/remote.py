"""A session over Spark Connect, by its address.

Law: an address may carry a token, so only its host and port are ever told.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rollview.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PORT = 15002
PATIENCE = 10.0


def connect(url: str, conf: Mapping[str, str]) -> SparkSession:
    """A new session on the server, with the settings that are given."""
    _check_listening(url)
    from pyspark.errors import PySparkImportError
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.builder.remote(url).create()
    except PySparkImportError as cause:
        raise EnvironmentFault(
            "Spark Connect needs Python packages that are not installed.", hint="pip install 'rollview[connect]'"
        ) from cause
    for key, value in conf.items():
        if not session.conf.isModifiable(key):
            raise UsageError(
                f"The setting '{key}' belongs to the Spark Connect server at {_place(url)}.",
                hint="Set it where the server is started, and take it out of the 'spark' part of rollview.yaml.",
            )
        session.conf.set(key, value)
    return session


def _check_listening(url: str) -> None:
    """PySpark itself would try again for many minutes."""
    parts = urlsplit(url)
    if parts.scheme != "sc" or not parts.hostname:
        raise UsageError("The address of a Spark Connect server begins with sc:// and names a host.")
    try:
        socket.create_connection((parts.hostname, parts.port or PORT), PATIENCE).close()
    except OSError as cause:
        raise EnvironmentFault(
            f"No Spark Connect server answers at {_place(url)}: {cause}.",
            hint="Start it, or correct 'remote' in the 'spark' part of rollview.yaml.",
        ) from cause


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or PORT}"
