"""A step from its record to its end: the one way in which anything becomes visible.

Law: a step is recorded before its first file is written. Its files are staged, then named by new versions of Delta
logs, and count for nothing until one catalog transaction pins those versions and finishes the step. So a process may
die anywhere: what was not pinned never was there. If the step fails, what it wrote is taken away at once; if its
process dies, by the next one.

Nobody else records or finishes steps, commits to a Delta log, or pins a version.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollview.catalog import Catalog, CatalogWriter, Lease, OpenQueries, Part, Pin, Relation, StepKind
from rollview.core.faults import reach
from rollview.core.interval import Csn, Interval
from rollview.errors import Retryable, RollviewError
from rollview.publish.belonging import prepare
from rollview.publish.recover import discard_unpinned, let_go, this_owner
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder

_log = logging.getLogger(__name__)

Profile = Mapping[str, Any]
"""What a step cost, for whoever looks at it later."""


@dataclass(frozen=True, slots=True)
class NewVersion:
    """What a version of a part's Delta log is to change: from the version that is pinned, or a part of its own."""

    relation: str
    part: Part
    folder: DeltaFolder
    base: Pin | None
    added: Sequence[DataFile] = ()
    removed: Sequence[DataFile] = ()


@dataclass(frozen=True, slots=True)
class LoggedVersion:
    """A version that is in the Delta log and pinned by nobody yet. ``rows``: all that it has."""

    relation: str
    part: Part
    version: int
    rows: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A version and what it covers: (after, through]."""

    logged: LoggedVersion
    after: Csn
    through: Csn

    @property
    def pin(self) -> Pin:
        return Pin(self.logged.part, self.logged.version, self.after, self.through, self.logged.rows)


@dataclass(frozen=True, slots=True)
class Publishing:
    """The catalog transaction in which steps become visible."""

    writer: CatalogWriter

    def show_step(self, step: OpenStep) -> None:
        if step.restarts:
            self._check_unread(step.relation)
        if step.earlier:
            self.writer.show_earlier(step.relation, [one.pin for one in step.shown])
            return
        if step.returns:
            self.writer.show_present(step.relation)
        for one in step.shown:
            self.show_pin(one.logged.relation, one.pin)
            if step.restarts and one.logged.part is Part.DELTA:
                self.writer.forget_coarse(one.logged.relation, one.after)
                self.writer.forget_definitions(one.logged.relation, one.after)
        for stretch in step.coarse:
            self.writer.add_coarse(step.relation, stretch)
        if step.places:
            self.writer.set_places(step.relation, step.places, step.queries)

    def _check_unread(self, name: str) -> None:
        """Whoever came to read its changes since would miss those that are not there."""
        snapshot = self.writer.snapshot()
        if snapshot.readers(name) or self.writer.subscribers.of(snapshot.get(name)):
            raise Retryable(f"The changes of view '{name}' are read by now.", hint="Run it again.", view=name)

    def show(self, logged: LoggedVersion, after: Csn, through: Csn) -> None:
        """From here on readers find this version, which covers (after, through]."""
        self.show_pin(logged.relation, Pin(logged.part, logged.version, after, through, logged.rows))

    def show_pin(self, relation: str, pin: Pin) -> None:
        """The same, where no new version is needed for it."""
        self.writer.pin(relation, pin)


@dataclass(frozen=True, slots=True)
class RunningStep:
    """A step that is recorded and not yet finished."""

    catalog: Catalog
    root: Path
    id: int
    kind: StepKind

    def begun(self) -> None:
        reach(f"{self.kind}.begun")

    def computed(self) -> None:
        """All of its files are staged, and nothing refers to them."""
        reach(f"{self.kind}.computed")

    def log(self, versions: Sequence[NewVersion], note: Mapping[str, str]) -> tuple[LoggedVersion, ...]:
        """New versions in the Delta logs. ``note``: what is said of them there."""
        logged: list[LoggedVersion] = []
        for new in versions:
            logged.append(_logged(new, note))
            if len(logged) < len(versions) and len(logged) == 1:
                reach(f"{self.kind}.first_logged")
        reach(f"{self.kind}.logged")
        return tuple(logged)

    @contextmanager
    def publish(
        self,
        lease: Lease | None,
        profile: Profile | None = None,
        *,
        held: Sequence[Lease] = (),
        along: Along | None = None,
    ) -> Iterator[Publishing]:
        """The step is finished when the block ends, in one transaction with all that the block does. ``held``: other
        leases without which nothing becomes visible. ``along``: what becomes visible with it."""
        done = [(self, profile), *(along.done if along is not None else ())]
        with _finished(self.catalog, lease, done, *held) as publishing:
            yield publishing
            if along is not None:
                along.show(publishing)
        reach(f"{self.kind}.published")

    def give_up(self) -> None:
        """What the step wrote goes, unless it was published after all."""
        try:
            # A publication whose outcome is unknown holds the clock: in here it has happened, or it never will.
            with self.catalog.write():
                running = [step for step in self.catalog.steps(limit=None, status="running") if step.id == self.id]
            # The step goes on until its files are gone: what cannot be taken away now is found by it later.
            for step in running:
                discard_unpinned(self.catalog.snapshot(), self.root, step.folders)
            with self.catalog.write() as writer:
                for step in running:
                    writer.finish_step(step.id, "failed", step.profile)
        # The failure itself matters more; the next recovery cleans up, of this process or of another.
        except RollviewError as error:
            self.let_go()
            _log.warning("step %d not given up: %s", self.id, error.message)

    def let_go(self) -> None:
        """This process has done with the step, whatever became of it: recovery will see."""
        self.catalog.let_go(self.id)
        let_go(self.root, self.id)


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A step whose versions are in the Delta logs, to become visible together with others. ``coarse``: stretches inside
    which the relation cannot be read from then on. ``restarts``: nothing before what it shows can be read. ``places``:
    how far tables are then in the delta of a view that is propagated table by table, and by which ``queries`` that may
    have to be compensated. ``earlier``: what it shows is of
    an earlier definition. ``returns``: readers found the view at one, and find it here again."""

    running: RunningStep
    relation: str
    profile: Profile
    shown: tuple[Shown, ...]
    coarse: tuple[Interval, ...] = ()
    restarts: bool = False
    places: Mapping[str, Csn] = field(default_factory=dict)
    queries: Mapping[str, OpenQueries] | None = None
    earlier: bool = False
    returns: bool = False


@dataclass(frozen=True, slots=True)
class Along:
    """What becomes visible with a commit because it was handed to it. ``behind``: views that could not be brought
    along, and why; None where that is no fault of theirs."""

    steps: tuple[OpenStep, ...] = ()
    behind: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def done(self) -> list[tuple[RunningStep, Profile | None]]:
        return [(step.running, step.profile) for step in self.steps]

    def show(self, publishing: Publishing) -> None:
        for step in self.steps:
            publishing.show_step(step)
        for view, problem in self.behind.items():
            if problem is not None:
                publishing.writer.set_problem(view, problem)

    def give_up(self) -> None:
        for step in self.steps:
            step.running.give_up()

    def let_go(self) -> None:
        """Whether they were published is not known: recovery will see."""
        for step in self.steps:
            step.running.let_go()


def begin(
    catalog: Catalog,
    lease: Lease | None,
    root: Path,
    relation: str,
    kind: StepKind,
    interval: Interval,
    folders: Sequence[str],
) -> RunningStep:
    """A step that will write to these folders, recorded."""
    with catalog.write(lease) as writer:
        step = RunningStep(catalog, root, writer.begin_step(relation, kind, interval, this_owner(), folders), kind)
        steps = writer.identity().begun
    try:
        prepare(root, steps, folders)
    except BaseException:
        step.give_up()
        raise
    return step


@contextmanager
def recorded(
    catalog: Catalog,
    lease: Lease | None,
    root: Path,
    relation: str,
    kind: StepKind,
    interval: Interval,
    folders: Sequence[str],
) -> Iterator[RunningStep]:
    """The step that writes to these folders, while the block runs. If the block fails, so has the step."""
    step = begin(catalog, lease, root, relation, kind, interval, folders)
    with given_up_on_failure(step):
        yield step


@contextmanager
def given_up_on_failure(step: RunningStep) -> Iterator[None]:
    """A step that is recorded goes on. If the block fails, so has the step."""
    try:
        yield
    except BaseException:
        step.give_up()
        raise


@contextmanager
def publish_together(
    catalog: Catalog, lease: Lease, done: Sequence[tuple[RunningStep, Profile]]
) -> Iterator[Publishing]:
    """Several steps become visible at once."""
    reach("publish.begun")
    with _finished(catalog, lease, done) as publishing:
        yield publishing
        reach("publish.pinned")
    reach("publish.published")


@contextmanager
def publish_transaction(
    catalog: Catalog, lease: Lease, steps: Sequence[RunningStep], along: Along, held: Lease | None = None
) -> Iterator[Publishing]:
    """The steps of one local transaction become visible at once, with the views that it takes along."""
    done = [(step, None) for step in steps]
    with _finished(catalog, lease, [*done, *along.done], held) as publishing:
        yield publishing
        along.show(publishing)
    reach("commit.published")


@contextmanager
def published(catalog: Catalog, lease: Lease) -> Iterator[Publishing]:
    """Pins that change without any file being written: such a change needs no step."""
    with catalog.write(lease) as writer:
        yield Publishing(writer)


def finish_without_files(step: RunningStep, profile: Profile) -> None:
    """A step that only took files away, which nobody could see, is done."""
    with _finished(step.catalog, None, [(step, profile)]):
        pass


def drop(writer: CatalogWriter, relation: Relation) -> None:
    """A relation leaves the catalog. Its files stay for those who still read them; maintenance removes them."""
    writer.drop_relation(relation.name)
    csn = writer.snapshot().moment.csn
    step = writer.begin_step(
        relation.name, "drop", Interval(csn, csn), this_owner(), [one.folder for one in relation.parts]
    )
    writer.finish_step(step, "done")


def dropped() -> None:
    """The transaction that drops relations has ended."""
    reach("drop.published")


def show_again(folder: DeltaFolder, version: int) -> None:
    """Other programs read the newest version of a Delta table: it has the files of this one from here on."""
    folder.commit(version, (), (), {"shown_again": str(version)})


@contextmanager
def _finished(
    catalog: Catalog,
    lease: Lease | None,
    done: Sequence[tuple[RunningStep, Profile | None]],
    *held: Lease | None,
) -> Iterator[Publishing]:
    with catalog.write(lease, *held) as writer:
        yield Publishing(writer)
        for step, profile in done:
            writer.finish_step(step.id, "done", profile)


def _logged(new: NewVersion, note: Mapping[str, str]) -> LoggedVersion:
    base = new.base
    rows = sum(file.rows for file in new.added) - sum(file.rows for file in new.removed)
    if base is None:
        version = new.folder.commit(None, new.added, new.removed, note)
        return LoggedVersion(new.relation, new.part, version, rows)
    # A version that changes nothing would only be one more to read.
    changes = new.added or new.removed
    version = new.folder.commit(base.version, new.added, new.removed, note) if changes else base.version
    return LoggedVersion(new.relation, new.part, version, base.rows + rows)
