"""The command line on a warehouse that only writes down what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pyarrow as pa
import pytest

from rollview.catalog import Definition, LedgerEntry, Moment, Part, Pin, Relation, RelationKind, Snapshot
from rollview.cli.main import main
from rollview.core.interval import Interval
from rollview.core.schema import Column, Constraints, Schema
from rollview.project import Project
from rollview.results import (
    ExplainedOperator,
    ExplainedTerm,
    Explanation,
    Maintained,
    MaintenanceDone,
    Refreshed,
    Rolled,
    StatementResult,
    Status,
    TableStatus,
    ValidTime,
    Verification,
    ViewCreated,
    ViewRefreshed,
    ViewRolled,
    ViewStatus,
)

NOON = datetime(2026, 12, 13, 12, 0, tzinfo=UTC)


class Frame:
    """As much of a DataFrame as the command line needs."""

    def __init__(self, types: Mapping[str, str], rows: list[tuple[Any, ...]]) -> None:
        fields = [
            SimpleNamespace(name=name, dataType=SimpleNamespace(simpleString=lambda t=t: t))
            for name, t in types.items()
        ]
        self.schema = SimpleNamespace(fields=fields)
        self.types, self.data = types, rows

    def limit(self, count: int) -> Frame:
        return Frame(self.types, self.data[:count])

    def toArrow(self) -> pa.Table:
        columns = list(zip(*self.data, strict=True)) or [()] * len(self.types)
        return pa.table([pa.array(list(column)) for column in columns], names=list(self.types))

    def toLocalIterator(self, prefetchPartitions: bool = False) -> Iterator[tuple[Any, ...]]:  # noqa: N803
        return iter(self.data)


def relation(name: str, kind: RelationKind, reads: tuple[str, ...] = ()) -> Relation:
    view = kind is RelationKind.VIEW
    first = Part.EXTENT if view else Part.STATE
    definition = Definition("SELECT 1 AS one", ("one",), "a comment", {}, {}) if view else None
    pins = {first: Pin(first, 3, 7, 7, 42), Part.DELTA: Pin(Part.DELTA, 4, 0, 9, 5)}
    constraints = Constraints(primary_key=() if view else ("id",))
    schema = Schema((Column("id", "bigint"), Column("x", "string")))
    return Relation(1, name, kind, schema, constraints, definition, reads, "f-1", 1, pins, (), None)


@dataclass
class FakeWarehouse:
    root: Path
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    catalog: Any = None

    def __post_init__(self) -> None:
        entry = LedgerEntry(9, "local", "9", "t-9", NOON, NOON, ())
        self.catalog = SimpleNamespace(
            ledger=lambda interval, limit: self.told("ledger", interval, limit) or (entry,),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.calls.append(("close",))

    def told(self, name: str, *arguments: Any) -> Any:
        self.calls.append((name, *arguments))
        answer = self.answers.get(name)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def snapshot(self) -> Snapshot:
        relations = (relation("orders", RelationKind.TABLE), relation("sales", RelationKind.VIEW, ("orders",)))
        return Snapshot(Moment(9, NOON), {r.name: r for r in relations})

    def sql(self, *statements: str, allow_unsafe: bool = False) -> tuple[StatementResult, ...]:
        return self.told("sql (unsafe)" if allow_unsafe else "sql", *statements) or tuple(
            StatementResult("INSERT", s, "orders", 3, 0, None, 10) for s in statements
        )

    def create_view(self, text: str) -> ViewCreated:
        return self.told("create_view", text) or ViewCreated("sales", 9, 4, "incremental", False)

    def drop_view(self, name: str) -> None:
        self.told("drop_view", name)

    def refresh(
        self,
        select: tuple[str, ...] = (),
        to: Any = None,
        mode: str | None = None,
        on_progress: Any = None,
        workers: int | None = None,
    ) -> Refreshed:
        view = ViewRefreshed(
            "sales",
            Interval(7, 9),
            "incremental",
            "",
            5,
            42,
            2,
            0.5,
            1,
            2048,
            2,
            4096,
            {"plan": 0.1, "Spark jobs": 0.3},
            (),
        )
        return self.told("refresh", select, to, mode) or Refreshed(9, (view,))

    def maintain(self, select: tuple[str, ...] = (), on_progress: Any = None, **wishes: Any) -> Maintained:
        merged = MaintenanceDone("orders", "delta", "merge", "40 of 41 files are small", Interval(0, 9), 39, 2048)
        gone = MaintenanceDone(None, None, "remove", "no view or table has them", None, 3, 1)
        return self.told("maintain", select, wishes) or Maintained(9, wishes["explain"], (merged, gone))

    def resolve(self, point: Any, name: str | None = None) -> int:
        return {"latest": 9}.get(point, point) if isinstance(point, int | str) else 8

    def roll(self, names: tuple[str, ...], to: Any, on_progress: Any = None) -> Rolled:
        return self.told("roll", names, to) or Rolled(8, tuple(ViewRolled(n, 7, 8, 42) for n in names))

    def read(self, name: str, as_of: Any = None) -> Frame:
        rows = [(i, None if i % 2 else f"row {i}") for i in range(250)]
        return self.told("read", name, as_of) or Frame({"id": "bigint", "x": "string"}, rows)

    def read_labelled(self, name: str, as_of: Any = None) -> SimpleNamespace:
        return SimpleNamespace(frame=self.read(name, as_of), places=self.answers.get("places", ()))

    def delta(self, name: str, after: int, through: int) -> Frame:
        return self.told("delta", name, after, through) or Frame({"id": "bigint", "_count": "bigint"}, [(1, -1)])

    def explain(self, name: str) -> Explanation:
        operators = (ExplainedOperator("sum", "linear", "sums add up"),)
        return Explanation(name, "incremental", operators, (ExplainedTerm("orders", True, "it changes"),), "SELECT 1")

    def verify(self, name: str, at: int | None = None, *, ask_sources: bool = False) -> Verification:
        return self.told("verify", name, at) or Verification(name, at or 7, True, 42)

    def valid_time(self, name: str) -> ValidTime:
        return ValidTime(7, 9, NOON, None)

    def status(self) -> Status:
        view = ViewStatus("sales", 7, 9, 2, 75.0, "on demand", 42, NOON, "incremental", None)
        return self.told("status") or Status(9, NOON, (TableStatus("orders", 5, 3, 9),), (view,))


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err.splitlines()[-1])["error"]


Cli = Callable[..., Ran]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rollview.yaml").write_text("version: 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def warehouse(project: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWarehouse:
    fake = FakeWarehouse(project / ".rollview")
    monkeypatch.setattr(Project, "open", lambda self: fake)
    return fake


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        said = capsys.readouterr()
        return Ran(int(ended.value.code or 0), said.out, said.err)

    return run
