"""The other sides of the sinks: a folder, a web server, and librdkafka's own mock broker.

The mock keeps transactions, but does not hide messages of one that was cut off in the middle: a broker of the real kind
does. Nothing here dies in the middle of one.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from tests.unit.maintain.small import Small
from tests.unit.subscribers.consumer import Consumer
from tests.unit.subscribers.test_files import check as check_files

from rollview.core.brokers import SilentLogger


class Receiver(Protocol):
    @property
    def address(self) -> str: ...

    def check(self, small: Small) -> Consumer:
        """The rows at every position are the view's; what it has in the end."""

    def close(self) -> None: ...


class Folder:
    def __init__(self, place: Path) -> None:
        self.address = str(place / "out")

    def check(self, small: Small) -> Consumer:
        return check_files(small, Path(self.address))

    def close(self) -> None: ...


class WebServer:
    """Keeps what is posted by its key, and how often it came. ``statuses``: what it answers first."""

    def __init__(self, place: Path | None = None, certificate: tuple[Path, Path] | None = None) -> None:
        self.posted: dict[str, list[dict[str, Any]]] = {}
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.statuses: list[int] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        scheme, host = "http", "127.0.0.1"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            scheme, host = "https", "localhost"
        self.address = f"{scheme}://{host}:{self._server.server_port}/changes"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        kept = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = kept.statuses.pop(0) if kept.statuses else 204
                if status < 300:
                    kept.posted.setdefault(self.headers["Idempotency-Key"], []).append(body)
                    kept.headers.append(dict(self.headers))
                    kept.paths.append(self.path)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        return Handler

    def check(self, small: Small) -> Consumer:
        """By its keys it has everything once, though it may have come more often, each time the same."""
        consumer = Consumer()
        for same in self.posted.values():
            assert all(body == same[0] for body in same)
            first = same[0]
            consumer.take(_changes(first["rows"]), first["after"], first["through"], full=first["full"])
            assert consumer.rows == small.states[first["through"]]
        return consumer

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Topic:
    """A topic of librdkafka's mock broker."""

    def __init__(self, place: Path | None = None) -> None:
        from confluent_kafka import Producer

        self._mock = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": ""}, logger=SilentLogger())
        (broker,) = self._mock.list_topics(timeout=10).brokers.values()
        self.brokers = f"{broker.host}:{broker.port}"
        self.address = f"kafka://{self.brokers}/changes"
        # The mock makes a topic that it is asked for, and does not know how to be told to.
        for topic in ("changes", "changes.position"):
            self._mock.list_topics(topic, 10)

    def messages(self, topic: str = "changes") -> Iterator[Any]:
        """All committed messages, over all partitions."""
        from confluent_kafka import Consumer as Client
        from confluent_kafka import TopicPartition

        settings = {"bootstrap.servers": self.brokers, "group.id": "test", "isolation.level": "read_committed"}
        client = Client({**settings, "enable.partition.eof": True}, logger=SilentLogger())
        try:
            for partition in client.list_topics(topic, 10).topics[topic].partitions:
                client.assign([TopicPartition(topic, partition, 0)])
                while not (message := client.consume(1, 10)[0]).error():
                    yield message
        finally:
            client.close()

    def check(self, small: Small) -> Consumer:
        """Rows come batch by batch, each once; the position topic says how far they go."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for message in self.messages():
            rows.setdefault(dict(message.headers())["rollview.batch"].decode(), []).append(json.loads(message.value()))
        consumer = Consumer()
        for message in self.messages("changes.position"):
            told = json.loads(message.value())
            came = rows.pop(told["batch"], [])
            assert len(came) == told["rows"], told
            came.sort(key=lambda row: row["_commit_version"])
            consumer.take(_changes(came), told["after"], told["through"], full=told["full"])
            assert consumer.rows == small.states[told["through"]]
        assert rows == {}
        return consumer

    def close(self) -> None: ...


RECEIVERS: dict[str, Callable[[Path], Receiver]] = {"files": Folder, "http": WebServer, "kafka": Topic}


def _changes(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["_change_type"], row["_commit_version"], row["id"], row["x"]) for row in rows]
