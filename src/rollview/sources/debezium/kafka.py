"""Topics of Kafka as streams: one for each partition, up to where it ends when it is asked.

Law: offsets are ours, kept with the position in the catalog; nothing is committed to Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rollview.core.brokers import SilentLogger, broker_host
from rollview.core.tls import is_here
from rollview.errors import EnvironmentFault, LostPosition, SourceDown, UsageError
from rollview.sources.debezium.streams import Found, Place

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
except ModuleNotFoundError as error:
    raise EnvironmentFault(
        "Topics of Kafka need the package confluent-kafka.", hint="pip install 'rollview[kafka]'"
    ) from error

_SECONDS = 10.0
_AT_ONCE = 1000
_WAITS = {
    "socket.timeout.ms": 10_000,
    "socket.connection.setup.timeout.ms": 10_000,
    "socket.keepalive.enable": True,
    "session.timeout.ms": 10_000,
}
"""How long a broker is waited for, unless the settings say otherwise."""
_PROTOCOL = "security.protocol"


class KafkaStreams:
    """``settings``: what librdkafka is to know besides the address, with secrets in it."""

    def __init__(self, source: str, address: str, tables: Sequence[str], settings: Mapping[str, str]) -> None:
        brokers, prefix = _parsed(source, address)
        if _PROTOCOL not in settings and not all(map(is_here, map(broker_host, brokers.split(",")))):
            raise UsageError(
                f"The broker of source '{source}' is not on this machine, and nothing says how it shows who it is.",
                hint=f"Say kafka.{_PROTOCOL}: ssl or sasl_ssl among its options; plaintext if the network is safe.",
            )
        self._source = source
        # Statements are in the topic of the prefix alone, and are read after the rows that they come before.
        self._topics = [f"{prefix}.transaction", *(f"{prefix}.{table}" for table in tables), prefix]
        own = {"bootstrap.servers": brokers, "group.id": f"rollview-{source}", "enable.auto.commit": False}
        reading = {"isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "error"}
        self._consumer = Consumer({**_WAITS, **settings, **own, **reading}, logger=SilentLogger())

    def start(self) -> Mapping[str, Place]:
        return {
            f"{topic}/{partition}": [low]
            for topic in self._topics
            for partition in self._partitions(topic)
            for low in [self._bounds(topic, partition)[0]]
        }

    def listed(self) -> Mapping[str, Sequence[str]]:
        return {}

    def check(self, places: Mapping[str, Place], known: Mapping[str, Sequence[str]] | None) -> None:
        """Every offset is told by the broker."""

    def records(self, stream: str, after: Place) -> Iterator[Found]:
        topic, _, partition = stream.rpartition("/")
        low, high = self._bounds(topic, int(partition))
        if after[0] < low or after[0] > high:
            raise LostPosition(self._source, f"topic '{topic}' holds offsets {low} to {high}, not {after[0]}")
        if after[0] == high:
            return
        self._consumer.assign([TopicPartition(topic, int(partition), after[0])])
        offset = after[0]
        while offset < high:
            # It waits for as many as it is asked for, so it is never asked for more than there are.
            messages = self._consume(min(_AT_ONCE, high - offset))
            if not messages:
                raise SourceDown(self._source, f"topic '{topic}' gives nothing after offset {offset}")
            for message in messages:
                failure = message.error()
                if failure is not None and failure.code() == KafkaError._PARTITION_EOF:
                    return
                if failure is not None:
                    raise SourceDown(self._source, str(failure))
                offset = (message.offset() or 0) + 1
                yield Found(stream, [offset], message.value())

    def _consume(self, count: int) -> Sequence[Any]:
        try:
            return self._consumer.consume(count, _SECONDS)
        except KafkaException as error:
            raise SourceDown(self._source, str(error.args[0])) from None

    def is_beyond(self, place: Place, other: Place) -> bool:
        return bool(place[0] > other[0])

    def close(self) -> None:
        self._consumer.close()

    def _partitions(self, topic: str) -> Sequence[int]:
        try:
            found = self._consumer.list_topics(topic, _SECONDS).topics[topic]
        except KafkaException as error:
            raise SourceDown(self._source, str(error.args[0])) from None
        return sorted(found.partitions)

    def _bounds(self, topic: str, partition: int) -> tuple[int, int]:
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), _SECONDS)
        except (KafkaException, TypeError) as error:
            raise SourceDown(self._source, str(error.args[0])) from None
        return int(low), int(high)


def _parsed(source: str, address: str) -> tuple[str, str]:
    """The brokers, host:port by host:port, and the prefix of the topics."""
    scheme, _, rest = address.partition("://")
    brokers, _, path = rest.partition("/")
    prefix = path.strip("/")
    # Users and passwords are no part of it, so what has an '@' is not repeated.
    if scheme != "kafka" or not brokers or not prefix or any(mark in rest for mark in "@?#;"):
        raise UsageError(
            f"The address of source '{source}' cannot be understood.",
            hint="Write kafka://host:9092/topic-prefix; users and passwords are options.",
        )
    return brokers, prefix
