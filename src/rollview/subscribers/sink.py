"""Where batches are delivered to, by address: a folder, ``https://…`` or ``kafka://…``.

Law: an address is stored and shown with its secret by reference alone (``env:NAME``, ``file:PATH``). What a sink holds
itself is believed after a crash: ``held`` is how far it has everything, whatever the catalog says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from rollview.catalog import SubscriberRecord
from rollview.core import references
from rollview.core.interval import Csn
from rollview.errors import UsageError
from rollview.subscribers.batch import ChangeBatch


class Sink(Protocol):
    def held(self, subscriber: SubscriberRecord) -> Csn | None:
        """Up to where it has everything from the subscriber's position on, rows that come first too; None if nothing,
        or if it cannot tell."""

    def put(self, batch: ChangeBatch) -> None:
        """When this returns it has the whole batch for good; if it is cut off, all of it or nothing can be seen."""

    def close(self) -> None: ...


def anchored(address: str, folder: Path) -> str:
    """The address as it is stored: understood from anywhere, without a secret in it."""
    if references.holds_secret(address):
        raise UsageError(
            "The address of a subscriber holds a secret.",
            hint="Put it into the environment or a file, and give env:NAME or file:PATH.",
        )
    if references.is_reference(address) or "://" in address:
        return references.anchored(address, folder)
    return str((folder / Path(address).expanduser()).absolute())


def open_sink(name: str, address: str) -> Sink:
    """Nothing is asked of it yet. ``name``: the subscriber's, for messages."""
    resolved = references.resolve(address, Path.cwd(), f"the address of subscriber '{name}'")
    scheme, is_url, _ = resolved.partition("://")
    if not is_url:
        return _files(name, resolved)
    known = _SINKS.get(scheme.lower())
    if known is None:
        raise UsageError(
            f"The address of subscriber '{name}' cannot be understood.",
            hint=f"Give a folder, or a URL that begins with {', '.join(f'{one}://' for one in _SINKS)}.",
        )
    return known(name, resolved)


def _files(name: str, address: str) -> Sink:
    from rollview.subscribers.files import FileSink  # when a subscriber has it

    return FileSink(name, Path(address))


def _http(name: str, address: str) -> Sink:
    from rollview.subscribers.http import HttpSink  # when a subscriber has it

    return HttpSink(name, address)


def _kafka(name: str, address: str) -> Sink:
    from rollview.subscribers.kafka import KafkaSink  # its package is an extra

    return KafkaSink(name, address)


_SINKS: dict[str, Callable[[str, str], Sink]] = {"http": _http, "https": _http, "kafka": _kafka}
