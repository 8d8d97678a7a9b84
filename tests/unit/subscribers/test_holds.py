"""What a subscriber has not acknowledged is not given up, unless it is overtaken by name."""

from __future__ import annotations

import pytest
from tests.unit.maintain.small import Small
from tests.unit.maintain.test_maintain import run
from tests.unit.subscribers.consumer import Consumer

from rollview.catalog import Part
from rollview.errors import NotFound, OutOfReach
from rollview.results import Maintained, SubscriberState


def holds(done: Maintained) -> list[str]:
    return [one.reason for one in done.actions if one.action == "hold" and one.relation == "v"]


@pytest.mark.parametrize("wish", ["prune_before", "compress_before"])
def test_maintain_stops_at_a_position_and_names_who_holds_it(grown: Small, wish: str) -> None:
    grown.warehouse.add_subscriber("ahead", "v", 9)
    grown.warehouse.add_subscriber("billing", "v", 5)
    assert any("subscriber 'billing' is at csn 5" in why for why in holds(run(grown, explain=True, **{wish: 10})))
    done = run(grown, **{wish: 10})
    assert any("stops at 5: subscriber 'billing' is at csn 5" in why for why in holds(done))
    view = grown.warehouse.snapshot().get("v")
    assert view.pins[Part.DELTA].after == (5 if wish == "prune_before" else 0)
    consumer = Consumer(5, grown.states[5])
    for batch in grown.warehouse.batches("billing", most_rows=1):
        consumer.store(batch)
        assert consumer.rows == grown.states[batch.through]
    assert len(consumer.csns) > 3
    run(grown, **{wish: 10})
    assert grown.warehouse.subscribers("ahead")[0].state is SubscriberState.OK
    grown.check()


def test_rows_that_come_first_are_held_too(grown: Small) -> None:
    grown.warehouse.add_subscriber("x", "v")
    run(grown, prune_before=10)
    batch = grown.warehouse.pull("x")
    assert batch is not None
    assert (batch.full, batch.through) == (True, 0)


@pytest.mark.parametrize("wish", ["prune_before", "compress_before"])
def test_who_is_overtaken_by_name_is_out_of_reach_and_resyncs(grown: Small, wish: str) -> None:
    wh = grown.warehouse
    wh.add_subscriber("slow", "v", 5)
    before = wh.pull("slow")
    assert before is not None
    wh.maintain(overtake=["slow"], **{wish: 10})  # type: ignore[arg-type]
    with pytest.raises(OutOfReach, match="cannot go on from there: its changes"):
        wh.pull("slow")
    with pytest.raises(OutOfReach):
        before.ack()
    assert wh.subscribers("slow")[0].state is SubscriberState.OUT_OF_REACH
    wh.resync_subscriber("slow")
    consumer = Consumer(5, grown.states[5])
    for batch in wh.batches("slow"):
        consumer.store(batch)
        assert consumer.rows == grown.states[batch.through]
    assert consumer.csns == [12]


def test_only_a_subscriber_can_be_overtaken(grown: Small) -> None:
    with pytest.raises(NotFound, match="no subscriber 'nobody'"):
        grown.warehouse.maintain(overtake=["nobody"], prune_before=3)


def test_a_subscriber_of_a_history_that_ended_holds_nothing(grown: Small) -> None:
    import sqlalchemy as sa

    from rollview.catalog import tables as t

    grown.warehouse.add_subscriber("old", "v", 5)
    with grown.warehouse.catalog._database.write() as connection:
        connection.execute(sa.update(t.subscriber).values(folder="v-" + "e" * 32))
    assert holds(run(grown, prune_before=10)) == []


def test_the_ledger_goes_behind_the_oldest_need_and_a_subscriber_is_one(grown: Small) -> None:
    wh = grown.warehouse
    assert not [one for one in run(grown).actions if one.action == "forget"]
    wh.add_subscriber("slow", "v", 5)
    moment = wh.catalog.ledger()[9].effective
    assert not [one for one in run(grown, explain=True, prune_before=8).actions if one.action == "forget"]
    (told,) = [one for one in run(grown, prune_before=8).actions if one.action == "forget"]
    assert told.reason.startswith("rows behind csn 5 that nothing needs: 4 of the ledger, 4 of changes")
    assert [entry.csn for entry in wh.catalog.ledger()] == list(range(5, 13))
    consumer = Consumer(5, grown.states[5])
    for batch in wh.batches("slow", most_rows=1):
        assert None not in batch.rows["_commit_timestamp"].to_pylist()
        consumer.store(batch)
    assert consumer.rows == grown.states[12]
    run(grown, prune_before=8)
    assert [entry.csn for entry in wh.catalog.ledger()] == list(range(8, 13))
    assert moment is not None
    assert wh.resolve(moment) == 10
    with pytest.raises(OutOfReach, match="the ledger is forgotten there"):
        wh.resolve(moment.replace(year=2001))
    grown.check()
