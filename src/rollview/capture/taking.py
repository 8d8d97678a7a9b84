"""Units of work that were read behind the ledger while their source was asked get csns of their own.

Law: exactly the units that were read, in the source's order, by the way that every capture takes: so whoever has heard
of them knows which csn is the state after the last. The source stays held by its one lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rollview.capture.commit_stream import Arrived, CommitStream, Reached, Reading
from rollview.capture.sequencer import Sequencer
from rollview.catalog import Catalog, Lease, Snapshot, SourceRecord
from rollview.errors import Retryable
from rollview.sources.protocol import Source


class UnitsRead(CommitStream):
    """A source that has committed these units and nothing else."""

    def __init__(self, source: Source, record: SourceRecord, snapshot: Snapshot, arrived: Sequence[Arrived]) -> None:
        super().__init__(source, record, snapshot)
        self.arrived = tuple(arrived)

    def read(self, reached: Reached, limit: int) -> Reading:
        done = self.source.order(reached.position)
        left = tuple(one for one in self.arrived if self.source.order(one.unit.position) > done)
        last = self.arrived[-1]
        return Reading(left, last.unit.position, True, None, None, last.effective)


def take(catalog: Catalog, root: Path, lease: Lease, units: UnitsRead) -> None:
    """Retryable unless all of them got their csns."""
    if any(one.members for one in units.arrived):
        raise _not_taken(units.name, "it has parts of global transactions, which wait for each other")
    sequencer = Sequencer(catalog, root, [units], lease)
    sequencer.run()
    if sequencer.reached[units.name].position != units.arrived[-1].unit.position:
        raise _not_taken(units.name, "it could not be captured")


def _not_taken(source: str, reason: str) -> Retryable:
    return Retryable(
        f"What source '{source}' has committed meanwhile has no csn yet: {reason}.", hint="The next refresh asks again."
    )
