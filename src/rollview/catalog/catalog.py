"""The catalog: what the warehouse knows about itself.

Law: what is not in the catalog does not exist. Readers see one moment; writers come one after another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from types import TracebackType
from typing import Self

from rollview.catalog import (
    address,
    definitions,
    forgotten,
    leases,
    migrate,
    moments,
    reading,
    schemas,
    sources,
    subscribers,
)
from rollview.catalog.clock import UptimeClock
from rollview.catalog.database import Database, WallClock, system_time
from rollview.catalog.leases import Lease
from rollview.catalog.pulse import Pulse
from rollview.catalog.readers import Readers
from rollview.catalog.schemas import ColumnVersion
from rollview.catalog.values import (
    ChangeCount,
    DefinitionVersion,
    HeldPart,
    Identity,
    LeaseInfo,
    LedgerEntry,
    MissedCommits,
    Moment,
    Quarantined,
    Snapshot,
    SourcePosition,
    SourceRecord,
    Step,
    StepKind,
    StepStatus,
    SubscriberRecord,
    UnitPart,
)
from rollview.catalog.writer import CatalogWriter
from rollview.core.interval import Csn, Interval
from rollview.core.phases import phase

LEASE_SECONDS = 30.0
HEARTBEATS_PER_LEASE = 6
SHORTEST_HEARTBEAT = 0.05


class Catalog:
    """Safe to share between threads. ``url`` is an SQLAlchemy URL or the path of an SQLite file."""

    def __init__(self, database: Database, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._database = database
        self._lease_seconds = lease_seconds
        self._held: set[Lease] = set()
        self._pulse = Pulse(database)
        self.readers = Readers(database)

    @classmethod
    def create(
        cls,
        url: str | os.PathLike[str],
        *,
        lease_seconds: float = LEASE_SECONDS,
        wall_clock: WallClock = system_time,
        uptime: UptimeClock | None = None,
    ) -> Self:
        """A new, empty catalog; AlreadyExists if there is one."""
        return cls(_prepared(url, wall_clock, uptime, migrate.create), lease_seconds=lease_seconds)

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str],
        *,
        lease_seconds: float = LEASE_SECONDS,
        wall_clock: WallClock = system_time,
        uptime: UptimeClock | None = None,
    ) -> Self:
        """The catalog that is there, brought up to date; NotFound if there is none."""
        return cls(_prepared(url, wall_clock, uptime, migrate.bring_up_to_date), lease_seconds=lease_seconds)

    def __repr__(self) -> str:
        return f"Catalog({self.address!r})"

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        return self._database.address.shown

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._pulse.stop()
        self.readers.stop()
        self._database.close()

    def identity(self) -> Identity:
        """The warehouse that the catalog belongs to."""
        with self._database.read() as connection:
            return reading.read_identity(connection)

    def now(self) -> datetime:
        """The time by which the ledger and grace periods go: the database's, or this machine's. ClockJumped if it
        cannot be true."""
        with self._database.read() as connection:
            now = self._database.now(connection)
            self._database.check_time(now, reading.read_last_seen(connection))
            return now

    def accept_clock(self) -> datetime:
        """The time that the clock tells now is right, whatever others say."""
        with self.write() as writer:
            return writer.accept_clock()

    def snapshot(self) -> Snapshot:
        with phase("catalog"), self._database.read() as connection:
            return reading.read_snapshot(connection)

    def moment(self) -> Moment:
        """The newest csn and its time: what a snapshot begins with, alone."""
        with phase("catalog"), self._database.read() as connection:
            return reading.read_moment(connection)

    def csn_at(self, moment: datetime, relations: Iterable[str] | None = None) -> Csn:
        """The csn at which every source is as it was at that moment; 0 before the first.

        ``relations``: only the sources that these read; without them all. NotPassed while a source is not known to have
        passed the moment, OutOfReach where no csn is exactly that moment.
        """
        with self._database.read() as connection:
            return moments.read_csn_at(connection, moment, relations)

    def horizon(self) -> Moment:
        """The csn behind which the ledger is forgotten, and when the last commit up to it counts as committed."""
        with self._database.read() as connection:
            return forgotten.read_horizon(connection)

    def definitions(self, view: str) -> tuple[DefinitionVersion, ...]:
        """Every definition that a view has had within reach, the oldest first."""
        with self._database.read() as connection:
            snapshot = reading.read_snapshot(connection)
            names = {relation.id: relation.name for relation in snapshot.relations.values()}
            return definitions.read_log(connection, snapshot.view(view), names)

    def csn_recorded_by(self, moment: datetime) -> Csn:
        """The newest csn that was given out by then; 0 before the first."""
        with self._database.read() as connection:
            return moments.read_csn_recorded_by(connection, moment)

    def last_changes(self, relations: Collection[str], at: Csn) -> tuple[Moment, ...]:
        """The last change of each of the relations up to a csn, with the time at which it counts as committed."""
        with self._database.read() as connection:
            return moments.read_last_changes(connection, relations, at)

    def next_changes(self, relations: Collection[str], after: Csn) -> tuple[Moment, ...]:
        """The first change of each of the relations after a csn."""
        with self._database.read() as connection:
            return moments.read_next_changes(connection, relations, after)

    def positions(self, csn: Csn) -> tuple[SourcePosition, ...]:
        """The TxnID vector of a csn: how far it covers each source."""
        with self._database.read() as connection:
            return moments.read_positions(connection, csn)

    def ledger(self, interval: Interval | None = None, limit: int | None = None) -> tuple[LedgerEntry, ...]:
        """Units of work in the order of their csn; of too many, the newest."""
        with self._database.read() as connection:
            return reading.read_ledger(connection, interval, limit)

    def parts(self, source: str, interval: Interval, limit: int | None = None) -> tuple[tuple[Csn, UnitPart], ...]:
        """What a source committed, by csn, the newest first."""
        with self._database.read() as connection:
            return reading.read_parts(connection, source, interval, limit)

    def changes(self, relation: str, interval: Interval) -> tuple[ChangeCount, ...]:
        with self._database.read() as connection:
            return reading.read_changes(connection, relation, interval)

    def missed(self, relations: Iterable[str], interval: Interval, since: datetime, until: datetime) -> MissedCommits:
        """The commits of the interval that changed one of the relations; of all commits to them, how many were made
        from one moment to another."""
        with self._database.read() as connection:
            return moments.read_missed(connection, tuple(relations), interval, since, until)

    def oldest_change(self, relations: Iterable[str], interval: Interval) -> datetime | None:
        """When the first commit of the interval that changed one of the relations was made."""
        with self._database.read() as connection:
            return reading.read_oldest_change(connection, relations, interval)

    def steps(
        self, relation: str | None = None, limit: int | None = 20, status: StepStatus | None = None
    ) -> tuple[Step, ...]:
        """Newest first."""
        with self._database.read() as connection:
            return reading.read_steps(connection, relation, limit, status)

    def last_steps(self) -> Mapping[str, Step]:
        """The newest finished propagate, apply or recompute of each relation, by name."""
        with self._database.read() as connection:
            return reading.read_last_steps(connection)

    def last_step(self, relation: str, kind: StepKind) -> Step | None:
        """The newest finished step of a kind."""
        with self._database.read() as connection:
            return reading.read_last_step(connection, relation, kind)

    def row_counts(self) -> tuple[int, int, int]:
        """How many rows there are of the ledger, of changes and of steps: what grows with use."""
        with self._database.read() as connection:
            return reading.read_row_counts(connection)

    def settled(self, relation: str) -> datetime | None:
        """When a step of the relation last ended: since then its pins are as they are."""
        with self._database.read() as connection:
            return reading.read_settled(connection, relation)

    def dropped(self) -> Mapping[str, datetime]:
        """When relations were dropped whose files may still be there, by their folders."""
        with self._database.read() as connection:
            return reading.read_dropped(connection)

    def columns(self) -> tuple[ColumnVersion, ...]:
        """The meta relation: all columns that all relations ever had, with the csns at which they did."""
        with self._database.read() as connection:
            return schemas.read_columns(connection)

    def sources(self) -> tuple[SourceRecord, ...]:
        with self._database.read() as connection:
            return sources.read_sources(connection)

    def source(self, name: str) -> SourceRecord:
        with self._database.read() as connection:
            return sources.get_source(connection, name)

    def quarantine(self) -> tuple[Quarantined, ...]:
        """Rows of sources that have no representation here, the oldest first."""
        with self._database.read() as connection:
            return sources.read_quarantine(connection)

    def held(self) -> tuple[HeldPart, ...]:
        """Parts of global transactions that keep their sources waiting, oldest first."""
        with self._database.read() as connection:
            return sources.read_held(connection)

    def released(self) -> frozenset[str]:
        """Global transactions that go without their missing parts, because somebody decided so."""
        with self._database.read() as connection:
            return sources.read_released(connection)

    def subscribers(self) -> tuple[SubscriberRecord, ...]:
        with self._database.read() as connection:
            return subscribers.read_subscribers(connection)

    def subscriber(self, name: str) -> SubscriberRecord:
        with self._database.read() as connection:
            return subscribers.get_subscriber(connection, name)

    def commit_times(self, interval: Interval) -> Mapping[Csn, datetime]:
        """When the commits of the interval count as committed."""
        with self._database.read() as connection:
            return reading.read_commit_times(connection, interval)

    def leases(self) -> tuple[LeaseInfo, ...]:
        """What is held now, and by whom."""
        with self._database.read() as connection:
            return leases.read_leases(connection, self._database.now(connection))

    def lease(self, *things: str, wait: float = 30.0) -> AbstractContextManager[Lease]:
        """Hold all of the things while the block runs; Busy if one is still taken after ``wait`` seconds."""
        ttl = self._lease_seconds
        heartbeat = max(ttl / HEARTBEATS_PER_LEASE, SHORTEST_HEARTBEAT)
        return leases.held(self._database, things, self._held, wait=wait, ttl=ttl, heartbeat=heartbeat)

    @contextmanager
    def write(self, *leases: Lease | None) -> Iterator[CatalogWriter]:
        """One transaction: all of the block's changes, or none if it raises. LostLease if another took over."""
        with phase("catalog"), self._database.write() as connection:
            held = [lease for lease in leases if lease is not None]
            tokens = {thing: token for lease in held for thing, token in lease.tokens.items()}
            writer = CatalogWriter(connection, self._database, tokens)
            for lease in held:
                lease.verify(connection)
            yield writer
        self._pulse.begun(writer.begun - writer.ended)
        self._pulse.ended(writer.ended)

    def let_go(self, *step_ids: int) -> None:
        """This process has done with steps that go on in the catalog: it gives no more signs of life of them."""
        self._pulse.ended(step_ids)

    def abandoned(self, is_elsewhere: Callable[[Step], bool]) -> tuple[Step, ...]:
        """Steps that nobody may finish any more: taken for abandoned before; a lease of theirs was acquired again; or,
        of a process that cannot be seen from here, without a sign of life for long."""
        with self._database.read() as connection:
            now = self._database.now(connection)
            tokens = leases.read_tokens(connection)
            running = reading.read_steps(connection, None, None, "running")
            left = reading.read_steps(connection, None, None, "abandoned")
        moved = [step for step in running if any(tokens.get(thing, 0) > token for thing, token in step.tokens.items())]
        silent = [step for step in running if step.expires is not None and step.expires <= now and is_elsewhere(step)]
        return tuple({step.id: step for step in (*left, *moved, *silent)}.values())

    def verify(self, lease: Lease) -> None:
        """LostLease unless it is still held."""
        with self._database.write() as connection:
            lease.verify(connection)


def _prepared(
    url: str | os.PathLike[str],
    wall_clock: WallClock,
    uptime: UptimeClock | None,
    prepare: Callable[[Database], None],
) -> Database:
    database = Database(address.parse(url), wall_clock, uptime)
    try:
        prepare(database)
    except BaseException:
        database.close()
        raise
    return database
