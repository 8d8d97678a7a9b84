"""Pull, store, acknowledge: what a subscriber has at its position is the view there. No Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.unit.maintain.small import Small
from tests.unit.maintain.test_maintain import grow, run
from tests.unit.subscribers.consumer import Consumer, told

import rollview
from rollview import errors
from rollview.catalog import Definition
from rollview.core.schema import Constraints
from rollview.results import SubscriberState
from rollview.subscribers.changes import find_end


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small.founded(tmp_path / "w")


def test_from_the_start_all_rows_come_first_and_then_every_commit(grown: Small) -> None:
    grown.warehouse.add_subscriber("x", "v")
    consumer = Consumer()
    for batch in grown.warehouse.batches("x", most_rows=1):
        consumer.store(batch)
        assert consumer.rows == grown.states[batch.through]
    assert consumer.csns[0] == 0
    assert consumer.csn == 12
    # A commit that changes nothing of the view is no batch.
    changed = [csn for csn in range(1, 13) if grown.states[csn] != grown.states[csn - 1]]
    assert consumer.csns[1:] == changed
    assert grown.warehouse.subscribers("x")[0].position == 12


def test_from_a_csn_and_from_now(grown: Small) -> None:
    grown.warehouse.add_subscriber("early", "v", 5)
    grown.warehouse.add_subscriber("late", "v", "now")
    consumer = Consumer(5, grown.states[5])
    for batch in grown.warehouse.batches("early"):
        consumer.store(batch)
    assert (consumer.csn, consumer.rows) == (12, grown.states[12])
    assert grown.warehouse.pull("late") is None
    grown.commit([], [(99, "new")])
    grown.refresh()
    batch = grown.warehouse.pull("late")
    assert batch is not None
    assert told(batch.rows) == [("insert", 13, 99, "new")]
    (entry,) = [entry for entry in grown.warehouse.catalog.ledger() if entry.csn == 13]
    assert batch.rows["_commit_timestamp"].to_pylist() == [entry.effective]


def test_a_batch_holds_whole_commits_and_ends_when_it_has_enough_rows(small: Small) -> None:
    small.commit([], [(n, "a") for n in range(5)])
    small.commit([], [(7, "b")])
    small.commit([], [(8, "c")])
    small.refresh()
    small.warehouse.add_subscriber("x", "v", 0)
    sizes = [(batch.through, batch.rows.num_rows) for batch in small.warehouse.batches("x", most_rows=2)]
    assert sizes == [(1, 5), (3, 2)]


def test_the_same_batch_comes_again_until_it_is_acknowledged_whatever_came_meanwhile(grown: Small) -> None:
    grown.warehouse.add_subscriber("x", "v", 3)
    first = grown.warehouse.pull("x")
    grow(grown, 2, seed=5)
    again = grown.warehouse.pull("x", most_rows=1)
    assert first is not None
    assert again is not None
    assert (again.name, again.rows) == (first.name, first.rows)
    assert first.ack() == first.ack() == 12
    after = grown.warehouse.pull("x")
    assert after is not None
    assert (after.after, after.through) == (12, 14)


def test_acks_that_come_late_or_twice_change_nothing(grown: Small) -> None:
    wh = grown.warehouse
    wh.add_subscriber("x", "v", 2)
    batch = wh.pull("x")
    assert batch is not None
    assert batch.through == 12
    assert wh.ack("x", 6).moved
    assert not wh.ack("x", 6).moved
    late = wh.ack("x", 4)
    assert (late.position, late.moved) == (6, False)
    rest = wh.pull("x")
    assert rest is not None
    assert (rest.after, rest.through) == (6, 12)
    assert wh.ack("x", 12).position == 12


def test_what_was_not_handed_out_cannot_be_acknowledged(grown: Small) -> None:
    grown.warehouse.add_subscriber("x", "v", 2)
    with pytest.raises(errors.UsageError, match="Csn 9 was not handed out to subscriber 'x'"):
        grown.warehouse.ack("x", 9)
    with pytest.raises(errors.OutOfReach, match="through 12"):
        grown.warehouse.ack("x", 99)


def test_rows_that_come_first_are_acknowledged_by_that_word_alone(grown: Small) -> None:
    wh = grown.warehouse
    wh.add_subscriber("x", "v", 12)
    assert wh.resync_subscriber("x").position == 12
    assert not wh.ack("x", 11).moved
    with pytest.raises(errors.UsageError, match="rows at csn 12"):
        wh.ack("x", 12)
    batch = wh.pull("x")
    assert batch is not None
    assert batch.full
    assert batch.name == f"rows-{12:020d}"
    assert wh.ack("x", 12, full=True).moved
    assert not wh.ack("x", 12, full=True).moved
    assert wh.pull("x") is None


def test_a_batch_from_before_a_resync_counts_no_more(grown: Small) -> None:
    grown.warehouse.add_subscriber("x", "v", 3)
    old = grown.warehouse.pull("x")
    assert old is not None
    grown.warehouse.resync_subscriber("x")
    with pytest.raises(errors.OutOfReach, match="begun anew"):
        old.ack()


def test_a_puller_that_is_cut_off_anywhere_has_every_commit_once(grown: Small) -> None:
    """Between pull and store, between store and ack, and after the ack."""
    wh, chance, consumer = grown.warehouse, random.Random(1), Consumer()
    wh.add_subscriber("x", "v")
    while consumer.csn != 12:
        try:
            for batch in wh.batches("x", consumer.csn, most_rows=1):
                if chance.random() < 0.3:
                    raise InterruptedError
                consumer.store(batch)
                assert consumer.rows == grown.states[batch.through]
                if chance.random() < 0.4:
                    raise InterruptedError
        except InterruptedError:
            continue
    # Rows that replace everything may come twice; a commit never does.
    after = [csn for csn in consumer.csns if csn]
    assert after == sorted(set(after))


def test_commits_that_change_nothing_of_the_view_move_the_position_by_themselves(small: Small) -> None:
    small.warehouse.add_subscriber("x", "v", "now")
    small.commit([], [(1, "a")])
    small.refresh()
    first = small.warehouse.pull("x")
    assert first is not None
    small.commit([], [])
    small.refresh()
    assert small.warehouse.pull("x") is not None
    first.ack()
    assert small.warehouse.pull("x") is None
    assert small.warehouse.subscribers("x")[0].position == 2


def test_copies_of_a_row_are_rows_of_their_own(small: Small) -> None:
    small.commit([], [(1, "a"), (1, "a"), (1, "a")])
    small.commit([(1, "a"), (1, "a")], [])
    small.refresh()
    small.warehouse.add_subscriber("x", "v", 0)
    batch = small.warehouse.pull("x")
    assert batch is not None
    assert told(batch.rows) == [("insert", 1, 1, "a")] * 3 + [("delete", 2, 1, "a")] * 2


def test_a_row_that_changes_is_an_update_only_where_a_key_proves_it(small: Small) -> None:
    small.commit([], [(1, "a"), (2, "b"), (3, "c")])
    small.commit([(1, "a"), (3, "c")], [(1, "z"), (4, "d")])
    small.refresh()
    wh = small.warehouse
    wh.add_subscriber("x", "v", 1)
    plain = wh.pull("x")
    assert plain is not None
    assert [type_ for type_, *_ in told(plain.rows)] == ["delete", "delete", "insert", "insert"]
    with_key(small)
    keyed = wh.pull("x")
    assert keyed is not None
    assert told(keyed.rows) == [
        ("delete", 2, 3, "c"),
        ("update_preimage", 2, 1, "a"),
        ("update_postimage", 2, 1, "z"),
        ("insert", 2, 4, "d"),
    ]


def with_key(small: Small) -> None:
    import sqlalchemy as sa

    from rollview.catalog import tables as t

    with small.warehouse.catalog._database.write() as connection:
        key = Constraints(primary_key=("id",)).to_json()
        connection.execute(sa.update(t.relation).where(t.relation.c.name == "t").values(constraints=key))


def test_a_compressed_stretch_comes_as_one_and_a_position_inside_is_out_of_reach(grown: Small) -> None:
    wh = grown.warehouse
    run(grown, compress_before=8)
    wh.add_subscriber("x", "v")
    with pytest.raises(errors.OutOfReach, match="are stored as one"):
        wh.add_subscriber("y", "v", 4)
    consumer = Consumer()
    for batch in wh.batches("x", most_rows=1):
        consumer.store(batch)
        assert consumer.rows == grown.states[batch.through]
        assert batch.full or batch.after == 0 or batch.after >= 8
        if batch.after == 0 and not batch.full:
            assert set(batch.rows["_commit_version"].to_pylist()) == {8}
    assert consumer.csn == 12


def test_a_position_inside_a_stretch_cannot_be_acknowledged(grown: Small) -> None:
    run(grown, compress_before=8)
    grown.warehouse.add_subscriber("x", "v", 0)
    assert grown.warehouse.pull("x") is not None
    with pytest.raises(errors.OutOfReach, match="stored as one"):
        grown.warehouse.ack("x", 5)


def test_another_definition_ends_the_history_and_a_resync_begins_another(grown: Small) -> None:
    wh = grown.warehouse
    wh.add_subscriber("x", "v", 3)
    with wh.catalog.write() as writer:
        view = writer.snapshot().get("v")
        pins, home = dict(view.pins), "v-" + "c" * 32
        (grown.data / view.folder).rename(grown.data / home)
        definition = Definition("SELECT id, x FROM t", (), None, {}, {})
        writer.replace_definition("v", view.schema, definition, ("t",), home)
        for pin in pins.values():
            writer.pin("v", pin)
    with pytest.raises(errors.OutOfReach, match="replaced by another definition") as told_why:
        wh.pull("x")
    assert told_why.value.hint is not None
    assert "subscriber resync x" in told_why.value.hint
    assert wh.subscribers("x")[0].state is SubscriberState.OUT_OF_REACH
    wh.resync_subscriber("x")
    batch = wh.pull("x")
    assert batch is not None
    assert batch.full
    consumer = Consumer(3, grown.states[3])
    consumer.store(batch)
    assert consumer.rows == grown.states[12]


def test_a_view_with_subscribers_is_not_dropped(grown: Small) -> None:
    wh = grown.warehouse
    wh.add_subscriber("x", "v")
    with pytest.raises(errors.InUse, match="'x' read it"):
        wh.drop_view("v")
    wh.remove_subscriber("x")
    wh.drop_view("v")
    assert wh.subscribers() == ()


def test_names_are_unique_and_views_are_views(grown: Small) -> None:
    wh = grown.warehouse
    wh.add_subscriber("x", "v")
    with pytest.raises(errors.AlreadyExists, match="subscriber 'x'"):
        wh.add_subscriber("X", "v")
    with pytest.raises(errors.UsageError, match="is a table"):
        wh.add_subscriber("y", "t")
    with pytest.raises(errors.NotFound, match="no subscriber 'z'"):
        wh.pull("z")


def test_a_batch_is_exported() -> None:
    assert rollview.ChangeBatch.__name__ == "ChangeBatch"


def test_a_pull_that_another_overtakes_has_all_that_it_was_offered(
    grown: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has seen a later commit, and was offered a batch that ends there."""
    grown.warehouse.add_subscriber("x", "v", 3)
    first: list[bool] = []

    def overtaken(*about: Any) -> int | None:
        end = find_end(*about)
        if not first:
            first.append(True)
            grown.commit([], [(99, "late")])
            grown.refresh()
            grown.warehouse.pull("x")
        return end

    monkeypatch.setattr("rollview.subscribers.pulling.find_end", overtaken)
    batch = grown.warehouse.pull("x")
    assert batch is not None
    consumer = Consumer(3, grown.states[3])
    consumer.store(batch)
    assert (batch.through, consumer.rows) == (13, grown.states[13])
