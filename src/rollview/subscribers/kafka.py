"""Batches as messages of a Kafka topic, one for each row.

Law: the rows of a batch and the position after it are one Kafka transaction, so who reads committed messages sees all
of a batch or nothing, and never one twice. After a crash the position in Kafka is believed, whatever the catalog says:
it is the last message of this history in the topic ``NAME.position``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, unquote

from rollview.catalog import SubscriberRecord
from rollview.core.brokers import SilentLogger, broker_host
from rollview.core.interval import Csn
from rollview.core.tls import is_here
from rollview.errors import EnvironmentFault, SinkDown, UsageError
from rollview.subscribers.batch import ChangeBatch
from rollview.subscribers.wire import about, encoded, rows_of

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
except ModuleNotFoundError as error:
    raise EnvironmentFault(
        "Topics of Kafka need the package confluent-kafka.", hint="pip install 'rollview[kafka]'"
    ) from error

SECONDS = 30.0
"""How long a broker is waited for."""
_PROTOCOL = "security.protocol"
_WAITS = {"socket.timeout.ms": 10_000, "socket.connection.setup.timeout.ms": 10_000, "socket.keepalive.enable": True}


class KafkaSink:
    def __init__(self, name: str, address: str) -> None:
        self._name = name
        self._topic, self._settings = _parsed(name, address)
        self._positions = f"{self._topic}.position"
        self.seconds = SECONDS
        self._producer: Any = None

    def held(self, subscriber: SubscriberRecord) -> Csn | None:
        # It begins by ending what another process of the same name has not finished.
        self._begun(subscriber.token)
        try:
            told = [one for one in self._told() if one.get("batch", "").startswith(subscriber.token)]
        except KafkaException as error:
            raise self._down(error) from None
        return int(told[-1]["through"]) if told else None

    def put(self, batch: ChangeBatch) -> None:
        producer = self._begun(batch.token)
        headers = [("rollview.batch", batch.identity.encode())]
        try:
            producer.begin_transaction()
            for row in rows_of(batch):
                # Without a key all rows are in one partition, so that they stay in order.
                where = {"partition": 0} if batch.key is None else {"key": encoded([row[one] for one in batch.key])}
                self._produce(self._topic, encoded(row), headers=headers, **where)
            note = {**about(batch), "rows": batch.rows.num_rows}
            self._produce(self._positions, encoded(note), key=batch.token.encode(), partition=0)
            producer.commit_transaction(self.seconds)
        except (KafkaException, BufferError) as error:
            raise self._down(error) from None

    def close(self) -> None:
        """What was not committed is undone by the broker, or by whoever delivers next."""
        self._producer = None

    def _begun(self, token: str) -> Any:
        if self._producer is None:
            own = {"transactional.id": f"rollview-{token}", "transaction.timeout.ms": 60_000}
            self._create_positions()
            self._producer = Producer({**_WAITS, **self._settings, **own}, logger=SilentLogger())
            try:
                self._producer.init_transactions(self.seconds)
            except KafkaException as error:
                raise self._down(error) from None
        return self._producer

    def _produce(self, topic: str, value: bytes, **more: Any) -> None:
        while True:
            try:
                self._producer.produce(topic, value, **more)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _create_positions(self) -> None:
        """Compacted, so that the last position stays for as long as the topic does. A broker that makes topics by
        itself, or on which somebody else has made it, does not have to allow this."""
        admin = AdminClient({**_WAITS, **self._settings}, logger=SilentLogger())
        try:
            if self._positions in admin.list_topics(timeout=self.seconds).topics:
                return
            new = NewTopic(self._positions, 1, config={"cleanup.policy": "compact"})
            for made in admin.create_topics([new], request_timeout=self.seconds).values():
                with suppress(TimeoutError):
                    made.exception(self.seconds)
        except KafkaException as error:
            raise self._down(error) from None

    def _told(self) -> Iterator[dict[str, Any]]:
        """All positions that are committed, in their order."""
        reading = {"isolation.level": "read_committed", "enable.partition.eof": True, "enable.auto.commit": False}
        group = {"group.id": f"rollview-{self._topic}", "auto.offset.reset": "earliest"}
        consumer = Consumer({**_WAITS, **self._settings, **reading, **group}, logger=SilentLogger())
        try:
            consumer.assign([TopicPartition(self._positions, 0, 0)])
            give_up = time.monotonic() + self.seconds
            while True:
                message = consumer.poll(1.0)
                if message is None:
                    if time.monotonic() > give_up:
                        raise SinkDown(self._name, f"topic '{self._positions}' gives nothing")
                    continue
                failure = message.error()
                if failure is None:
                    yield json.loads(message.value() or b"{}")
                elif failure.code() in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART):
                    return
                elif not failure.retriable():
                    raise KafkaException(failure)
        finally:
            consumer.close()

    def _down(self, error: Exception) -> SinkDown:
        told = error.args[0] if error.args else error
        return SinkDown(self._name, told.str() if isinstance(told, KafkaError) else type(error).__name__)


def _parsed(name: str, address: str) -> tuple[str, Mapping[str, Any]]:
    """The topic, and what librdkafka is to know. Brokers are host:port, with commas between them."""
    rest = address.partition("://")[2]
    rest, _, query = rest.partition("?")
    server, _, topic = rest.partition("/")
    user, _, brokers = server.rpartition("@")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if not brokers or not topic or "/" in topic or "#" in query or "@" in topic:
        raise UsageError(
            f"The address of subscriber '{name}' cannot be understood.",
            hint="Write kafka://host:9092/topic, with options of librdkafka behind '?'; a user as user:password@host.",
        )
    if user:
        login, _, password = user.partition(":")
        options = {"sasl.username": unquote(login), "sasl.password": unquote(password), **options}
    if _PROTOCOL not in options and not all(is_here(broker_host(broker)) for broker in brokers.split(",")):
        raise UsageError(
            f"The broker of subscriber '{name}' is not on this machine, and nothing says how it shows who it is.",
            hint=f"Add ?{_PROTOCOL}=ssl or sasl_ssl to the address; plaintext if the network is safe.",
        )
    return topic, {"bootstrap.servers": brokers, **options}
