"""A step, from its record to its end.

Law: a step is recorded before its first effect. Whoever publishes it finishes it, in the same transaction; if it fails
before, what it wrote is taken away at once, and if its process dies, by the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rollview.catalog import Catalog, CatalogWriter, Lease, Relation, StepKind
from rollview.core.interval import Interval
from rollview.errors import RollviewError
from rollview.publish.belonging import prepare
from rollview.publish.recover import discard_unpinned, let_go, this_owner

_log = logging.getLogger(__name__)


@contextmanager
def recorded(
    catalog: Catalog,
    lease: Lease | None,
    root: Path,
    relation: str,
    kind: StepKind,
    interval: Interval,
    folders: Sequence[str],
) -> Iterator[int]:
    """The step that writes to these folders, while the block runs. If the block fails, so has the step."""
    with catalog.write(lease) as writer:
        step = writer.begin_step(relation, kind, interval, this_owner(), folders)
        begun = writer.identity().begun
    try:
        prepare(root, begun, folders)
        yield step
    except BaseException:
        give_up(catalog, root, step)
        raise


def give_up(catalog: Catalog, root: Path, step_id: int) -> None:
    """What the step wrote goes, unless it was published after all."""
    try:
        # A publication whose outcome is unknown holds the clock: in here it has happened, or it never will.
        with catalog.write():
            running = [step for step in catalog.steps(limit=None, status="running") if step.id == step_id]
        # The step goes on until its files are gone: what cannot be taken away now is found by it later.
        for step in running:
            discard_unpinned(catalog.snapshot(), root, step.folders)
        with catalog.write() as writer:
            for step in running:
                writer.finish_step(step.id, "failed", step.profile)
    # The failure itself matters more; the next recovery cleans up, of this process or of another.
    except RollviewError as error:
        let_go(root, step_id)
        _log.warning("step %d not given up: %s", step_id, error.message)


def drop(writer: CatalogWriter, relation: Relation) -> None:
    """A relation leaves the catalog. Its files stay for those who still read them; maintenance removes them."""
    writer.drop_relation(relation.name)
    csn = writer.snapshot().moment.csn
    step = writer.begin_step(relation.name, "drop", Interval(csn, csn), this_owner(), (relation.folder,))
    writer.finish_step(step, "done")
