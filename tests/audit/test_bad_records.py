"""One bad record stops its own source, with its place and its beginning; the others go on, and so does ``run``."""

from __future__ import annotations

import ast
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rollview.core.durations import duration
from rollview.errors import (
    EngineFailed,
    EnvironmentFault,
    LostPosition,
    RollviewError,
    SchemaChanged,
    SourceDown,
    Unreadable,
)
from rollview.results import Captured, Refreshed, SourceCaptured
from rollview.schedule.daemon import Event, Group, work
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.boundary import guarded, named
from rollview.sources.debezium.source import DebeziumSource
from rollview.sources.delta.source import DeltaSource
from rollview.sources.protocol import LayoutChange, Lender, Opening, Watched
from rollview.warehouse import Warehouse
from tests.shape import SOURCE, modules
from tests.sources.debezium_harness import DebeziumHarness
from tests.sources.delta_harness import DeltaHarness
from tests.sources.files_harness import FilesHarness
from tests.sources.harness import Write, account, stored
from tests.sources.sqlite_harness import SqliteHarness

DIGITS = "7" * 5_000
NEW = Write("account", None, account(7, "new", "7.00"))

Change = Callable[[dict[str, Any]], Any]


def _with(**changed: Any) -> Change:
    return lambda record: {**record, **changed}


def _source(**changed: Any) -> Change:
    return lambda record: {**record, "source": {**record["source"], **changed}}


RECORDS: dict[str, Change] = {
    "not JSON": lambda record: "{",
    "not an object": lambda record: [record],
    "values within values": lambda record: "[" * 100_000,
    "5,000 digits": lambda record: json.dumps(record).replace('"ts_ms":', f'"more": {DIGITS}, "ts_ms":'),
    "an exponent without end": lambda record: json.dumps(record).replace(
        '"ts_ms":', '"more": 1e99999999999999999999, "ts_ms":'
    ),
    "a name twice": lambda record: json.dumps(record).replace('"op":', '"op": "d", "op":'),
    "a time of another age": _source(ts_us=10**30),
    "a time in text": _source(ts_us="7" * 5_000),
    "a source that is text": _with(source="x"),
    "a source that is a list": _with(source=[1]),
    "a transaction that is text": _with(transaction="x"),
    "a transaction whose id is a list": _with(transaction={"id": []}),
    "a row that is text": _with(after="x"),
    "an operation that is an object": _with(op={}),
    "a table that is a number": _source(table=7),
    "a schema that is text": lambda record: {"schema": "x", "payload": record},
    "a schema of numbers": lambda record: {"schema": {"fields": [1]}, "payload": record},
    "a status that is none": lambda record: {"status": 7, "id": "501:9"},
    "an end that is no list": lambda record: {"status": "END", "id": "501:9", "data_collections": 7},
    "an end without numbers": lambda record: {"status": "END", "id": "501:9", "data_collections": [{}]},
    "a heartbeat of another age": lambda record: {"ts_ms": 10**30},
}


@pytest.fixture
def near(tmp_path: Path) -> Iterator[SqliteHarness]:
    with closing(SqliteHarness(tmp_path)) as harness:
        yield harness


@pytest.fixture
def warehouse(empty_warehouse: Warehouse, near: SqliteHarness, tmp_path: Path) -> Warehouse:
    """Captures an SQLite database, so that there is one that must not be hurt."""
    tables = (TableSettings("near_account", "account"), TableSettings("near_note", "note"))
    empty_warehouse.add_source("near", SourceSettings("sqlite", str(near.path), tables))
    return empty_warehouse


def raw(bank: DebeziumHarness, line: str) -> None:
    with (bank.root / f"events-{bank.file:04d}.jsonl").open("a") as file:
        file.write(line + "\n")


def test_each_bad_record_of_debezium_stops_its_source_at_its_place(
    warehouse: Warehouse, near: SqliteHarness, tmp_path: Path
) -> None:
    far = DebeziumHarness(tmp_path)
    warehouse.add_source("far", far.settings())
    path = far.root / "events-0001.jsonl"
    far.write(NEW)
    good = path.read_bytes()
    event = json.loads(good.splitlines()[-2])
    for number, (name, change) in enumerate(RECORDS.items(), 100):
        made = change(event)
        line = made if isinstance(made, str) else json.dumps(made)
        path.write_bytes(good)
        raw(far, line)
        near.write(Write("near_note".removeprefix("near_"), None, (name,)))
        far_done, near_done = sorted(warehouse.capture().sources, key=lambda one: one.name)
        assert near_done.problem is None, name
        assert stored(warehouse, "near_note") == near.rows("note"), name
        assert far_done.problem is not None, name
        state = next(source for source in warehouse.sources() if source.name == "far")
        assert (state.state, state.problem) == ("unreadable", far_done.problem), name
        assert "events-0001.jsonl" in far_done.problem, name
        assert line[:10] in far_done.problem or json.dumps(line[:10])[1:-1] in far_done.problem, name
        assert DIGITS not in far_done.problem, name
        # What was whole before it is here.
        assert stored(warehouse, "account") == far.rows("account"), name
        assert number
    path.write_bytes(good)
    assert [done.problem for done in warehouse.capture().sources] == [None, None]
    assert {source.state for source in warehouse.sources()} == {"active"}


VALUES: dict[str, tuple[dict[str, str], Any]] = {
    "a decimal that is an empty object": ({"v": "decimal(12,2)"}, {}),
    "a decimal of no scale": ({"v": "decimal(12,2)"}, {"value": "AQ==", "scale": None}),
    "a decimal of a scale without end": ({"v": "decimal(12,2)"}, {"value": "AQ==", "scale": 10**30}),
    "a date of another age": ({"v": "date"}, 10**30),
    "a moment of another age": ({"v": "timestamp"}, 10**30),
    "a number for a text": ({"v": "string"}, 7),
    "a text that is half a pair": ({"v": "string"}, "\ud800"),
    "an integer that is too large": ({"v": "bigint"}, 2**63),
    "bytes that are none": ({"v": "binary"}, "?"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_bad_value_of_debezium_stops_its_source(empty_warehouse: Warehouse, tmp_path: Path, name: str) -> None:
    types, value = VALUES[name]
    root = tmp_path / "events"
    root.mkdir()
    table = TableSettings("t", "t", {"id": "int", **types}, ("id",))
    row = {"id": 0, "v": None}
    about = {"db": "d", "schema": "public", "table": "t", "ts_us": 1}
    first = {"op": "r", "before": None, "after": row, "source": {**about, "snapshot": "last"}}
    (root / "e.jsonl").write_text(json.dumps(first) + "\n")
    empty_warehouse.add_source("s", SourceSettings("debezium", str(root), (table,)))
    event = {"op": "c", "after": {"id": 1, "v": value}, "source": about, "transaction": {"id": "5:1"}}
    end = {"status": "END", "id": "5:9", "data_collections": [{"data_collection": "public.t", "event_count": 1}]}
    with (root / "e.jsonl").open("a") as file:
        file.write(json.dumps(event) + "\n" + json.dumps(end) + "\n")
    (done,) = empty_warehouse.capture().sources
    assert done.problem is not None
    assert empty_warehouse.sources()[0].state == "bad_value"
    assert "'v'" in done.problem


LINES = {
    "not JSON": "{",
    "values within values": "[" * 100_000,
    "5,000 digits": f'{{"id": {DIGITS}}}',
    "an exponent without end": '{"id": 1e99999999999999999999}',
    "a name twice": '{"id": 8, "id": 9}',
    "not an object": "7",
    "not text": "\udcff",
}


@pytest.mark.parametrize("name", LINES)
def test_a_bad_line_of_a_file_stops_its_source(
    warehouse: Warehouse, near: SqliteHarness, tmp_path: Path, name: str
) -> None:
    far = FilesHarness(tmp_path)
    warehouse.add_source("far", far.settings())
    path = far.root / "account" / "9.jsonl"
    path.write_bytes((LINES[name] + "\n").encode("utf-8", "surrogateescape"))
    os.utime(path, (time.time() - 100, time.time() - 100))
    near.write(Write("note", None, (name,)))
    far_done, near_done = sorted(warehouse.capture().sources, key=lambda one: one.name)
    assert near_done.problem is None
    assert far_done.problem is not None
    assert "9.jsonl" in far_done.problem
    assert next(source for source in warehouse.sources() if source.name == "far").state == "bad_value"
    assert stored(warehouse, "near_note") == near.rows("note")


def test_a_commit_of_a_delta_log_that_is_not_understood_stops_its_source(
    warehouse: Warehouse, near: SqliteHarness, tmp_path: Path
) -> None:
    far = DeltaHarness(tmp_path)
    warehouse.add_source("far", far.settings())
    far.write(NEW)
    log = Path(far.settings().address) / "account" / "_delta_log"
    newest = sorted(log.glob("*.json"))[-1]
    good = newest.read_text()
    for bad in (good + "[" * 100_000 + "\n", good + f'{{"commitInfo": {DIGITS}}}\n', good.replace('"add"', '"add', 1)):
        newest.write_text(bad)
        far_done, near_done = sorted(warehouse.capture().sources, key=lambda one: one.name)
        assert near_done.problem is None
        assert far_done.problem is not None
        state = next(source for source in warehouse.sources() if source.name == "far").state
        assert state in ("unreadable", "lost_position")
    newest.write_text(good)
    assert [done.problem for done in warehouse.capture().sources] == [None, None]
    assert stored(warehouse, "account") == far.rows("account")


class Raising:
    """A driver that fails in a way that nobody thought of."""

    kind = "debezium"
    capabilities = DebeziumSource.capabilities

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any) -> Any:
            raise self.error

        return fail


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RecursionError(), Unreadable),
        (AssertionError(), Unreadable),
        (MemoryError(), Unreadable),
        (AttributeError("token=hunter2"), Unreadable),
        (sqlite3.OperationalError("token=hunter2"), Unreadable),
        (type("PanicException", (BaseException,), {})("token=hunter2"), Unreadable),
        (OSError(5, "Input/output error", "token=hunter2"), SourceDown),
        (TimeoutError("token=hunter2"), SourceDown),
        (OSError(28, "No space left on device"), EnvironmentFault),
        (LostPosition("s", "gone"), LostPosition),
    ],
)
def test_whatever_a_driver_raises_is_an_error_of_its_source(error: BaseException, kind: type[RollviewError]) -> None:
    source = guarded("far", Raising(error))  # type: ignore[arg-type]
    for call in (
        source.check,
        source.tables,
        lambda: source.first_copy().__enter__(),
        lambda: source.read("1", 1),
        lambda: source.acknowledge("1"),
        lambda: source.order("1"),
        source.remove,
        source.close,
    ):
        with pytest.raises(kind) as caught:
            call()
        assert "hunter2" not in caught.value.message
        assert caught.value.__cause__ is None or caught.value is error


def test_a_changed_table_leaves_the_boundary_as_a_value() -> None:
    change = LayoutChange("far", "t", "no key", gone=("a",), unsure=("b",))
    assert isinstance(change.refused(), SchemaChanged)
    assert guarded("far", Raising(change.raised())).read("1", 1) == change  # type: ignore[arg-type]


def test_the_exception_of_a_changed_table_is_caught_in_one_place() -> None:
    known = modules(SOURCE).values()
    catches = [
        module.name
        for module in known
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler) and node.type and "SchemaChanged" in ast.unparse(node.type)
    ]
    assert catches == ["rollview.sources.boundary"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_a_stop_is_no_error_of_a_source(error: BaseException) -> None:
    with pytest.raises(type(error)):
        guarded("far", Raising(error)).read("1", 1)  # type: ignore[arg-type]


def test_what_was_not_foreseen_is_told_by_its_kind_and_our_own_line() -> None:
    with pytest.raises(RollviewError) as caught, named("s", "p" * 1000):
        duration(None)  # type: ignore[arg-type]
    assert (
        "TypeError in core/durations.py, line" in caught.value.message
        or "AttributeError in core/durations.py, line" in caught.value.message
    )
    assert "after position p" in caught.value.message
    assert "p" * 201 not in caught.value.message


def test_a_guarded_source_can_do_what_it_could(tmp_path: Path) -> None:
    settings = SourceSettings("delta", str(tmp_path), (TableSettings("t", "t"),))
    delta = guarded("s", DeltaSource(Opening("s", settings, str(tmp_path), {}, {})))
    assert isinstance(delta, Watched)
    assert isinstance(delta, Lender)
    assert delta.kind == "delta"
    debezium = guarded("s", DebeziumSource(Opening("s", settings, str(tmp_path), {}, {})))
    assert not isinstance(debezium, Lender)


class Crew:
    """Captures and refreshes that raise whatever they like."""

    def __init__(self) -> None:
        self.rounds = 0

    def due_sources(self) -> tuple[Group, ...]:
        self.rounds += 1
        if self.rounds == 2:
            raise ZeroDivisionError
        return (("bad",), ("well",))

    def due_views(self, besides: Collection[str] = ()) -> tuple[Group, ...]:
        return () if "v" in besides else (("v",),)

    def held_by(self, names: Group) -> frozenset[str]:
        return frozenset(names)

    def due_subscribers(self) -> tuple[str, ...]:
        return ()

    def deliver(self, name: str) -> Any:
        raise AssertionError(name)

    def capture(self, names: Group) -> Captured:
        if names == ("bad",):
            raise RecursionError("token=hunter2")
        return Captured(1, (SourceCaptured("well", 0, 0, "1"),))

    def refresh(self, names: Any) -> Refreshed:
        raise KeyError("token=hunter2")


def test_the_daemon_goes_on_whatever_is_raised() -> None:
    stop = threading.Event()
    seen: list[Event] = []
    for event in work(Crew(), stop):
        seen.append(event)
        failed = {
            error.message.split(": ")[1].split()[0].rstrip(".") for error in seen if isinstance(error, EngineFailed)
        }
        if (
            failed == {"RecursionError", "KeyError", "ZeroDivisionError"}
            and sum(isinstance(e, Captured) for e in seen) > 3
        ):
            stop.set()
    assert not any("hunter2" in event.message for event in seen if isinstance(event, RollviewError))


def test_run_goes_on_with_the_others_and_notes_the_problem(
    warehouse: Warehouse, near: SqliteHarness, tmp_path: Path
) -> None:
    far = DebeziumHarness(tmp_path)
    warehouse.add_source("far", far.settings())
    raw(far, "[" * 100_000)
    stop = threading.Event()
    tried = 0
    for event in warehouse.run(0.1, stop):
        assert isinstance(event, Captured)
        tried += event.sources[0].name == "far"
        if tried == 2:
            stop.set()
        near.write(Write("note", None, ("x",)))
    state = next(source for source in warehouse.sources() if source.name == "far")
    assert state.state == "unreadable"
    assert state.problem is not None
    warehouse.capture(["near"])
    assert stored(warehouse, "near_note") == near.rows("note")


def test_a_source_that_does_not_say_when_keeps_no_other_waiting(
    warehouse: Warehouse, near: SqliteHarness, tmp_path: Path
) -> None:
    far = FilesHarness(tmp_path)
    settings = far.settings()
    options = {**settings.options, "schedule": "whenever"}
    warehouse.add_source("far", SourceSettings("files", settings.address, settings.tables, options))
    seen: set[str] = set()
    stop = threading.Event()
    for event in warehouse.run(0.1, stop):
        assert isinstance(event, Captured), event
        seen |= {source.name for source in event.sources}
        if seen == {"far", "near"}:
            stop.set()
