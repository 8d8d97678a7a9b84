"""Kafka's brokers as their clients name them."""

from __future__ import annotations

from typing import Any


def broker_host(broker: str) -> str:
    """Of ``host:port``, or of a host alone."""
    host, colon, port = broker.rpartition(":")
    return host if colon and port.isdigit() else broker


class SilentLogger:
    """What the library would print is in the errors that are raised."""

    def log(self, *_: Any) -> None: ...
