"""The order of units of work of several sources, against its laws on random histories."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from rollview.capture.arrange import Arranged, Queues, arrange
from rollview.capture.commit_stream import Arrived, GlobalMembership
from rollview.sources.protocol import UnitOfWork

NOON = datetime(2026, 12, 13, 12, tzinfo=UTC)


def unit(source: str, place: int, *ids: str, seconds: int | None = None, names: str = "ab", count: int = 0) -> Arrived:
    time = NOON + timedelta(seconds=place if seconds is None else seconds)
    members = tuple(GlobalMembership(one, frozenset() if count else frozenset(names), count) for one in ids)
    return Arrived(source, UnitOfWork(str(place), f"{source}{place}", time, {}), time, members)


def shown(arranged: Arranged) -> list[str]:
    return ["+".join(one.unit.transaction for one in entry.arrived) for entry in arranged.entries]


def run(queues: Queues, *released: str, through: datetime | None = None, by_time: bool = False) -> Arranged:
    return arrange(queues, frozenset(released), through, by_time)


def test_by_arrival_a_source_goes_after_the_other() -> None:
    queues = {"a": (unit("a", 1), unit("a", 2)), "b": (unit("b", 0),)}
    assert shown(run(queues)) == ["a1", "a2", "b0"]


def test_by_time_sources_take_turns_up_to_the_watermark() -> None:
    queues = {"a": (unit("a", 1), unit("a", 4)), "b": (unit("b", 0), unit("b", 2), unit("b", 9))}
    arranged = run(queues, through=NOON + timedelta(seconds=4), by_time=True)
    assert shown(arranged) == ["b0", "a1", "b2", "a4"]
    assert arranged.taken == {"a": 2, "b": 2}
    assert arranged.blocked == {}


def test_parts_wait_for_each_other_and_others_go_on() -> None:
    queues = {"a": (unit("a", 1), unit("a", 2, "g"), unit("a", 3)), "b": (unit("b", 1),), "c": (unit("c", 1),)}
    arranged = run(queues)
    assert shown(arranged) == ["a1", "b1", "c1"]
    assert arranged.taken["a"] == 1
    assert (arranged.blocked["a"].global_id, arranged.blocked["a"].missing) == ("g", ("b",))
    queues["b"] = (unit("b", 1), unit("b", 2, "g"), unit("b", 3))
    assert shown(run(queues)) == ["a1", "b1", "c1", "a2+b2", "a3", "b3"]


def test_a_number_of_parts() -> None:
    queues = {"a": (unit("a", 1, "g", count=3),), "b": (unit("b", 1, "g", count=3),), "c": ()}
    assert run(queues).blocked["b"].missing == ("1",)
    queues["c"] = (unit("c", 1, "g", count=3),)
    assert shown(run(queues)) == ["a1+b1+c1"]


def test_crossed_transactions_are_one() -> None:
    queues = {
        "a": (unit("a", 1, "g"), unit("a", 2), unit("a", 3, "h"), unit("a", 4)),
        "b": (unit("b", 1, "h"), unit("b", 2, "g"), unit("b", 3)),
    }
    arranged = run(queues)
    assert shown(arranged) == ["a1+a2+a3+b1+b2", "a4", "b3"]
    assert arranged.entries[0].global_id == "g, h"


def test_released_parts_go_alone() -> None:
    queues = {"a": (unit("a", 1, "g"), unit("a", 2)), "b": ()}
    arranged = run(queues, "g")
    assert shown(arranged) == ["a1", "a2"]
    assert (arranged.entries[0].global_id, arranged.blocked) == ("g", {})


def test_the_time_of_a_global_transaction_is_that_of_its_last_part() -> None:
    queues = {"a": (unit("a", 1, "g", seconds=1),), "b": (unit("b", 1, "g", seconds=7), unit("b", 2, seconds=8))}
    arranged = run(queues, through=NOON + timedelta(seconds=5), by_time=True)
    assert shown(arranged) == []
    arranged = run(queues, through=NOON + timedelta(seconds=7), by_time=True)
    assert shown(arranged) == ["a1+b1"]
    assert arranged.entries[0].effective == NOON + timedelta(seconds=7)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("by_time", [False, True])
def test_random_histories_keep_the_laws(seed: int, by_time: bool) -> None:
    """Every unit once, per source in order, all parts of a global transaction in one entry; nothing is stuck that need
    not be."""
    chance = random.Random(seed)
    queues: dict[str, list[Arrived]] = {name: [] for name in "abc"}
    lost = set()
    for step in range(40):
        if chance.random() < 0.6:
            name = chance.choice("abc")
            queues[name].append(unit(name, step))
            continue
        names = chance.sample("abc", chance.randint(2, 3))
        for name in names:
            if chance.random() < 0.03:
                lost.add(f"g{step}")
                continue
            place = chance.randint(max(0, len(queues[name]) - 2), len(queues[name]))
            queues[name].insert(place, unit(name, 1000 + step, f"g{step}", names="".join(names)))
    ordered = {name: tuple(_grow(queue)) for name, queue in queues.items()}
    arranged = run(ordered, by_time=by_time)
    done = [one for entry in arranged.entries for one in entry.arrived]
    for name, queue in ordered.items():
        own = [one for one in done if one.source == name]
        assert own == list(queue[: arranged.taken[name]])
    where: dict[str, int] = {}
    for number, entry in enumerate(arranged.entries):
        for one in entry.arrived:
            for member in one.members:
                assert where.setdefault(member.global_id, number) == number
    assert not lost & where.keys()
    if not lost:
        assert len(done) == sum(map(len, ordered.values()))


def _grow(queue: list[Arrived]) -> list[Arrived]:
    return [
        Arrived(one.source, one.unit, NOON + timedelta(seconds=place), one.members) for place, one in enumerate(queue)
    ]
