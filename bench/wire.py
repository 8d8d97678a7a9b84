"""A door in front of a server that counts the bytes which pass through it, in either direction."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Wire:
    """``sent``: to the server; ``received``: from it."""

    port: int
    sent: int = 0
    received: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def total(self) -> int:
        return self.sent + self.received

    def count(self, sent: int, received: int) -> None:
        with self._lock:
            self.sent, self.received = self.sent + sent, self.received + received


@contextmanager
def counted_wire(host: str, port: int) -> Iterator[Wire]:
    """Whoever connects to the wire's port speaks with the server."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        wire = Wire(door.getsockname()[1])
        threading.Thread(target=_serve, args=(door, (host, port), wire), daemon=True).start()
        yield wire


def _serve(door: socket.socket, server: tuple[str, int], wire: Wire) -> None:
    # The door is closed at the end of the measurement.
    with suppress(OSError):
        while True:
            client, _ = door.accept()
            behind = socket.create_connection(server)
            for ends, sent in (((client, behind), 1), ((behind, client), 0)):
                threading.Thread(target=_pass, args=(*ends, wire, sent), daemon=True).start()


def _pass(come: socket.socket, go: socket.socket, wire: Wire, sent: int) -> None:
    with suppress(OSError):
        while block := come.recv(1 << 16):
            wire.count(len(block) * sent, len(block) * (1 - sent))
            go.sendall(block)
    for one in (come, go):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
