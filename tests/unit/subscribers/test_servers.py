"""Batches posted to web servers and sent to Kafka topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers.tls import Authority
from tests.unit.maintain.small import Small
from tests.unit.maintain.test_maintain import grow
from tests.unit.subscribers.receivers import Topic, WebServer
from tests.unit.subscribers.test_pull import with_key

from rollview import subscribers
from rollview.errors import UsageError
from rollview.subscribers.kafka import KafkaSink
from rollview.subscribers.sink import open_sink

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[WebServer]:
    made = WebServer()
    yield made
    made.close()


def test_every_interval_is_posted_under_its_key(grown: Small, server: WebServer) -> None:
    grown.warehouse.add_subscriber("x", "v", to=server.address)
    grown.warehouse.deliver()
    grow(grown, 1, seed=9)
    grown.warehouse.deliver()
    token = grown.warehouse.catalog.subscriber("x").token
    names = [f"rows-{0:020d}", f"{0:020d}-{12:020d}", f"{12:020d}-{13:020d}"]
    assert list(server.posted) == [f"{token}-{name}" for name in names]
    assert server.check(grown).csn == 13


def test_a_server_that_refuses_gets_the_same_under_the_same_key(grown: Small, server: WebServer) -> None:
    server.statuses = [204, 503]
    grown.warehouse.add_subscriber("x", "v", to=server.address)
    (failed,) = grown.warehouse.deliver().subscribers
    assert failed.problem == "Subscriber 'x' cannot be delivered to: the server answers 503 Service Unavailable."
    assert failed.retryable
    assert grown.warehouse.subscribers("x")[0].state == "failing"
    grow(grown, 1, seed=9)
    grown.warehouse.deliver()
    # The interval that failed is not made longer by what came meanwhile.
    assert server.check(grown).csns == [0, 12, 13]
    assert grown.warehouse.subscribers("x")[0].state == "ok"


def test_a_redirect_is_not_followed(grown: Small, server: WebServer) -> None:
    server.statuses = [307]
    grown.warehouse.add_subscriber("x", "v", to=server.address)
    (failed,) = grown.warehouse.deliver().subscribers
    assert "307" in (failed.problem or "")


def test_a_server_that_is_not_there_is_told(grown: Small) -> None:
    grown.warehouse.add_subscriber("x", "v", to="http://127.0.0.1:9/x")
    (failed,) = grown.warehouse.deliver().subscribers
    assert failed.problem == "Subscriber 'x' cannot be delivered to: ConnectionRefusedError: Connection refused."


def test_a_secret_goes_to_the_server_and_nowhere_else(
    grown: Small, server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", server.address.replace("://", "://me:hush%2Fhush@") + "?shop=7")
    told = grown.warehouse.add_subscriber("x", "v", to="env:HOOK")
    assert told.to == "env:HOOK"
    grown.warehouse.deliver()
    assert server.headers[0]["Authorization"] == "Basic bWU6aHVzaC9odXNo"
    assert set(server.paths) == {"/changes?shop=7"}
    server.close()
    grow(grown, 1, seed=9)
    (failed,) = grown.warehouse.deliver().subscribers
    assert "hush" not in str(failed)
    assert "hush" not in str(grown.warehouse.subscribers())


@pytest.mark.parametrize("path", ["/", "/changes/", "/a%2Fb/c", "/a/b;v=1"])
def test_rows_are_posted_to_the_path_as_it_is_written(grown: Small, server: WebServer, path: str) -> None:
    grown.warehouse.add_subscriber("x", "v", "now", to=server.address.replace("/changes", path))
    grow(grown, 1, seed=9)
    grown.warehouse.deliver()
    assert server.paths == [path]


def test_http_to_another_machine_is_refused(grown: Small) -> None:
    with pytest.raises(UsageError, match="not on this machine"):
        grown.warehouse.add_subscriber("x", "v", to="http://example.org/x")
    open_sink("x", "https://example.org/x").close()


def test_a_certificate_is_checked(grown: Small, tmp_path: Path) -> None:
    authority = Authority.make(tmp_path / "authority")
    server = WebServer(certificate=authority.sign("localhost"))
    try:
        grown.warehouse.add_subscriber("unknown", "v", to=server.address)
        (failed,) = grown.warehouse.deliver().subscribers
        assert "certificate is not trusted" in (failed.problem or "")
        assert server.posted == {}
        grown.warehouse.remove_subscriber("unknown")
        grown.warehouse.add_subscriber("x", "v", to=f"{server.address}?sslrootcert={authority.certificate}")
        grown.warehouse.deliver()
        assert server.check(grown).csn == 12
        assert set(server.paths) == {"/changes"}
    finally:
        server.close()


def test_a_topic_has_every_row_once_and_says_how_far_it_is(grown: Small) -> None:
    topic = Topic()
    grown.warehouse.add_subscriber("x", "v", to=topic.address)
    grown.warehouse.deliver()
    grow(grown, 2, seed=9)
    grown.warehouse.deliver()
    assert topic.check(grown).csns == [0, 12, 14]
    # Without a key there is one partition, in order.
    assert {(message.partition(), message.key()) for message in topic.messages()} == {(0, None)}


def test_the_position_in_kafka_is_believed(grown: Small) -> None:
    """As after a crash between Kafka's commit and the catalog's."""
    topic, place = Topic(), grown.warehouse._place
    grown.warehouse.add_subscriber("x", "v", to=topic.address)
    for _ in range(2):
        batch = subscribers.pull(place, "x")
        assert batch is not None
        sink = KafkaSink("x", topic.address)
        sink.put(batch)
        (done,) = grown.warehouse.deliver().subscribers
        if batch.full:
            assert done.batches == 1
            grow(grown, 1, seed=9)
    assert grown.warehouse.subscribers("x")[0].position == 13
    assert topic.check(grown).csns == [0, 12, 13]


def test_a_proven_key_is_the_key_of_the_message(grown: Small) -> None:
    topic = Topic()
    with_key(grown)
    grown.warehouse.add_subscriber("x", "v", to=topic.address)
    grown.warehouse.deliver()
    for message in topic.messages():
        assert json.loads(message.key()) == [json.loads(message.value())["id"]]


def test_addresses_of_brokers_are_checked(grown: Small) -> None:
    for address in ("kafka://localhost", "kafka://localhost/a/b", "kafka:///topic"):
        with pytest.raises(UsageError, match="cannot be understood"):
            grown.warehouse.add_subscriber("x", "v", to=address)
    with pytest.raises(UsageError, match="not on this machine"):
        grown.warehouse.add_subscriber("x", "v", to="kafka://broker.example.org:9092/changes")
    open_sink("x", "kafka://a.example.org:9092,b.example.org/changes?security.protocol=ssl").close()


def test_a_broker_that_is_not_there_is_told(grown: Small) -> None:
    options = "socket.connection.setup.timeout.ms=1000&socket.timeout.ms=1000"
    sink = KafkaSink("x", f"kafka://127.0.0.1:9/changes?{options}")
    sink.seconds = 2.0
    grown.warehouse.add_subscriber("x", "v")
    batch = grown.warehouse.pull("x")
    assert batch is not None
    with pytest.raises(Exception, match="Subscriber 'x' cannot be delivered to"):
        sink.put(batch)
