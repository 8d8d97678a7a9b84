"""Something between a client and its server that can fall silent: connections stay, and nothing comes any more."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Asks = Callable[[bytes], bool]
"""Whether what a client sends makes its connection fall silent."""


class Between:
    """Forwards a port of this machine to another one; ``silent``: nothing more, on any connection."""

    def __init__(self, port: int | None, asks: Asks | None = None) -> None:
        self.silent = port is None
        self._target = port
        self._asks = asks
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            if self._target is not None:
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open.append(server)
                threading.Thread(target=self._forward, args=(client, server), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        silent = False
        with selectors.DefaultSelector() as ready, suppress(OSError, ValueError):
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    data = source.recv(65536)
                    if not data:
                        client.close()
                        server.close()
                        return
                    silent = silent or (source is client and self._asks is not None and self._asks(data))
                    if not self.silent and not silent:
                        key.data.sendall(data)


@contextmanager
def between(port: int | None, asks: Asks | None = None) -> Iterator[Between]:
    made = Between(port, asks)
    try:
        yield made
    finally:
        made.close()
