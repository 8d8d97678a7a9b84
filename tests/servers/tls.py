"""TLS before a PostgreSQL server whose own build has none: certificates by ``openssl``, and a front that decrypts.

The front speaks PostgreSQL's own beginning (SSLRequest, ``S``, handshake), so the driver's handshake is a real one.
"""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_SSL_REQUEST = struct.pack("!ii", 8, 80877103)
_NO_GSS = struct.pack("!ii", 8, 80877104)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate that signs others."""

    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "ca.pem"

    @classmethod
    def make(cls, folder: Path) -> Authority:
        folder.mkdir()
        made = cls(folder)
        _openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority"),
            *("-keyout", folder / "ca.key", "-out", made.certificate),
        )
        return made

    def sign(self, name: str) -> tuple[Path, Path]:
        """A certificate and its key for a host."""
        request, key, signed, extension = (self.folder / f"{name}.{end}" for end in ("csr", "key", "pem", "ext"))
        extension.write_text(f"subjectAltName=DNS:{name}\n")
        _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.folder / "ca.key"),
            *("-CAcreateserial", "-days", "2", "-extfile", extension, "-out", signed),
        )
        return signed, key


@contextmanager
def tls_front(certificate: Path, key: Path, port: int) -> Iterator[int]:
    """A port at which the plain server at ``port`` answers over TLS only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, context, port), daemon=True).start()
        yield listener.getsockname()[1]


def _accept(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, context, port), daemon=True).start()


def _serve(client: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError), client:
        asked = client.recv(8, socket.MSG_WAITALL)
        if asked == _NO_GSS:
            client.sendall(b"N")
            asked = client.recv(8, socket.MSG_WAITALL)
        if asked != _SSL_REQUEST:
            return
        client.sendall(b"S")
        with (
            context.wrap_socket(client, server_side=True) as secure,
            socket.create_connection(("127.0.0.1", port)) as server,
        ):
            threading.Thread(target=_copy, args=(server, secure), daemon=True).start()
            _copy(secure, server)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
