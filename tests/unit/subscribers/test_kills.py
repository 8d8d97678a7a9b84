"""Deliverers and pullers in processes of their own, killed between offer, delivery and acknowledgement, at every sink.

What the sink has at every position is the view there, and nothing came twice; by HTTP, nothing under two keys.
"""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from tests.sizes import times
from tests.unit.maintain.small import Small
from tests.unit.subscribers.consumer import Consumer
from tests.unit.subscribers.history import grow_at_once
from tests.unit.subscribers.receivers import RECEIVERS
from tests.unit.subscribers.worker import deliver_in_a_process, pull_in_a_process, pulled

pytestmark = pytest.mark.slow

STEPS = ("deliver.offered", "deliver.put", "deliver.acked")
COMMITS = times(40, 10_000)
ROWS = times(6, 120)
KILLS = times(3, 40)


@pytest.mark.parametrize("kind", RECEIVERS)
def test_kills_between_delivery_and_acknowledgement(kind: str, tmp_path: Path) -> None:
    receiver = RECEIVERS[kind](tmp_path)
    try:
        small = Small.founded(tmp_path / "w")
        grow_at_once(small, COMMITS // 2)
        small.warehouse.add_subscriber("x", "v", to=receiver.address)
        chance, killed = random.Random(7), 0
        for number in range(KILLS):
            # Every step at least once, at the first batch or a later one.
            fault = f"{STEPS[number % len(STEPS)]}:{chance.randint(1, 2)}"
            killed += deliver(small, fault) == -signal.SIGKILL
            if number == KILLS // 2:
                grow_at_once(small, COMMITS - COMMITS // 2, seed=1)
        assert killed == KILLS
        assert deliver(small) == 0
        consumer = receiver.check(small)
        assert consumer.csn == COMMITS == small.warehouse.subscribers("x")[0].position
        assert len(consumer.csns) > KILLS / 2
        assert deliver(small) == 0
        assert receiver.check(small) == consumer
    finally:
        receiver.close()


def deliver(small: Small, fault: str | None = None) -> int | None:
    done = deliver_in_a_process(str(small.warehouse.root), ROWS, fault)
    assert done in (0, -signal.SIGKILL)
    return done


def test_pullers_that_are_killed_and_acknowledge_late_and_twice(tmp_path: Path) -> None:
    small, store = Small.founded(tmp_path / "w"), str(tmp_path / "pulled.db")
    grow_at_once(small, COMMITS // 2)
    small.warehouse.add_subscriber("x", "v")
    chance, root = random.Random(7), str(small.warehouse.root)
    for number in range(KILLS):
        step = ("pulled", "stored", "acked")[number % 3]
        fault = f"{step}:{chance.randint(1, 2)}"
        assert pull_in_a_process(root, store, ROWS, number, fault) == -signal.SIGKILL
        if number == KILLS // 2:
            grow_at_once(small, COMMITS - COMMITS // 2, seed=1)
    assert pull_in_a_process(root, store, ROWS, KILLS) == 0
    consumer = Consumer()
    for changes, after, through, full in pulled(store):
        assert consumer.csn is None or through > consumer.csn, "nothing is stored twice"
        consumer.take(changes, after, through, full=full)
        assert consumer.rows == small.states[through]
    assert consumer.csn == COMMITS == small.warehouse.subscribers("x")[0].position
    assert len(consumer.csns) > KILLS / 2
