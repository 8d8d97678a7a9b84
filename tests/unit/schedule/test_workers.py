"""Tasks side by side: each after what it needs, errors when all that began has ended, nobody waits for nobody."""

from __future__ import annotations

import threading
import time
from functools import partial
from random import Random
from typing import Any

import pytest

from rollview.schedule import workers
from rollview.schedule.workers import Workers


@pytest.fixture(autouse=True)
def _no_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "use_pool", lambda spark, name: None)


def team(number: int) -> Workers:
    spark: Any = None
    return Workers(spark, number)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_each_task_begins_when_those_before_it_have_ended(number: int) -> None:
    random, ended, wrong = Random(3), list[str](), list[str]()
    names = [f"t{place}" for place in range(12)]
    after = {name: random.sample(names[:place], min(place, 2)) for place, name in enumerate(names)}

    def task(name: str) -> None:
        wrong.extend(f"{name} before {one}" for one in after[name] if one not in ended)
        time.sleep(random.random() * 0.01)
        ended.append(name)

    team(number).run({name: partial(task, name) for name in names}, after)
    assert (sorted(ended), wrong) == (sorted(names), [])
    assert number > 1 or ended == names


def test_tasks_that_need_not_wait_meet() -> None:
    together = threading.Barrier(2)
    team(2).run({name: lambda: bool(together.wait(20)) and None for name in "ab"})


def test_one_worker_is_the_thread_that_asks() -> None:
    threads: list[threading.Thread] = []
    team(1).run({"a": lambda: threads.append(threading.current_thread())})
    assert team(1).begin(threading.current_thread).result() is threads[0] is threading.current_thread()


def test_an_error_is_raised_when_all_that_began_has_ended_and_nothing_begins_after_it() -> None:
    ended, meet = list[str](), threading.Barrier(2)

    def slow() -> None:
        meet.wait(20)
        time.sleep(0.05)
        ended.append("slow")

    def fails() -> None:
        meet.wait(20)
        raise ValueError("no")

    tasks = {"slow": slow, "fails": fails, "later": lambda: ended.append("later")}
    with pytest.raises(ValueError, match="no"):
        team(2).run(tasks, {"later": ["fails"]})
    assert ended == ["slow"]


def test_tasks_that_ask_for_others_never_wait_for_ever() -> None:
    """More of them than workers, each needing another that is behind it in the queue."""

    def outer(number: int, found: list[int]) -> None:
        inner = [team(2).begin(partial(pow, number, power)) for power in (1, 2)]
        found.append(sum(one.result() for one in inner))

    found: list[int] = []
    team(2).run({str(number): partial(outer, number, found) for number in range(8)})
    assert sorted(found) == [number + number**2 for number in range(8)]


def test_what_nobody_began_is_not_found() -> None:
    assert team(1).begin(lambda: 1).find_result() is None
    begun = team(2).begin(lambda: 1)
    assert begun.result() == 1
    failing = team(2).begin(lambda: 1 // 0)
    time.sleep(0.05)
    assert failing.find_result() is None
