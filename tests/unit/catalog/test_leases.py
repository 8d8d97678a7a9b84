from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.unit.catalog.samples import add_table, commit, commit_in

from rollview import errors
from rollview.catalog import Catalog, Change, this_process
from rollview.catalog.process import is_dead


def test_tokens_grow_with_every_acquisition(catalog: Catalog) -> None:
    tokens = []
    for _ in range(3):
        with catalog.lease("commit", "relation:t") as lease:
            tokens.append(lease.tokens)
    assert tokens == [{"commit": n, "relation:t": n} for n in (1, 2, 3)]
    assert catalog.leases() == ()


def test_several_things_are_taken_all_or_none(catalog: Catalog) -> None:
    with catalog.lease("relation:b"), pytest.raises(errors.Busy, match="relation 'b'"):
        catalog.lease("relation:a", "relation:b", "relation:c", wait=0.1).__enter__()
    with catalog.lease("relation:a", "relation:c", wait=0):
        assert [info.thing for info in catalog.leases()] == ["relation:a", "relation:c"]


def test_things_that_differ_in_case_are_the_same(catalog: Catalog) -> None:
    with catalog.lease("relation:Sales", "relation:SALES") as lease:
        assert lease.things == ("relation:sales",)
        with pytest.raises(errors.Busy):
            catalog.lease("relation:sales", wait=0).__enter__()


def test_a_lease_is_released_when_the_work_fails(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError), catalog.lease("commit"):
        raise ZeroDivisionError
    with catalog.lease("commit", wait=0):
        pass


def test_a_waiting_thread_gets_the_lease_when_it_is_released(catalog: Catalog) -> None:
    waiting = threading.Event()

    def take() -> int:
        waiting.set()
        with catalog.lease("commit", wait=20) as lease:
            return lease.tokens["commit"]

    with ThreadPoolExecutor(1) as pool:
        with catalog.lease("commit"):
            taken = pool.submit(take)
            waiting.wait()
        assert taken.result() == 2


def test_a_write_under_a_lost_lease_is_refused_and_leaves_nothing(
    catalog: Catalog, reopened: Callable[..., Catalog]
) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
    slow = reopened(lease_seconds=-1)
    with slow.lease("commit", "relation:t") as lost:
        with catalog.lease("relation:t", wait=0):
            commit(catalog)
            with pytest.raises(errors.LostLease, match="held relation 't' for too long"), slow.write(lost) as writer:
                commit_in(writer, [Change("t", 1, 0)])
        with pytest.raises(errors.LostLease):
            lost.check()
    assert catalog.snapshot().moment.csn == 1


def test_releasing_a_lost_lease_does_not_take_it_from_its_new_holder(
    catalog: Catalog, reopened: Callable[..., Catalog]
) -> None:
    losing = reopened(lease_seconds=-1).lease("commit")
    losing.__enter__()
    with catalog.lease("commit", wait=0):
        losing.__exit__(None, None, None)
        assert [info.token for info in catalog.leases()] == [2]


def test_the_heartbeat_notices_that_the_lease_is_lost(catalog: Catalog, reopened: Callable[..., Catalog]) -> None:
    slow = reopened(lease_seconds=0.3)
    with slow.lease("commit") as lost:
        lost._stop.set()
        lost._thread.join()
        with catalog.lease("commit", wait=5):
            lost._stop.clear()
            lost._keep()
            with pytest.raises(errors.LostLease):
                lost.check()


def test_threads_commit_under_leases_one_after_another(catalog: Catalog) -> None:
    def work(_: int) -> list[int]:
        given = []
        for _ in range(5):
            with catalog.lease("commit", wait=60) as lease:
                expect = catalog.snapshot().moment.csn + 1
                with catalog.write(lease) as writer:
                    given.append(commit_in(writer, expect=expect).csn)
        return given

    with ThreadPoolExecutor(4) as pool:
        given = [csn for part in pool.map(work, range(4)) for csn in part]
    assert sorted(given) == list(range(1, 21))


def test_threads_that_want_overlapping_things_never_wait_forever(catalog: Catalog) -> None:
    wanted = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "b", "a")]

    def work(things: tuple[str, ...]) -> None:
        for _ in range(5):
            with catalog.lease(*things, wait=60) as lease, catalog.write(lease):
                pass

    with ThreadPoolExecutor(len(wanted)) as pool:
        list(pool.map(work, wanted))


def test_a_process_is_dead_only_when_that_is_certain() -> None:
    me = this_process()
    assert not is_dead(me)
    assert is_dead(replace(me, started="1"))
    assert is_dead(replace(me, pid=2**22 + 1))
    assert not is_dead(replace(me, pid=2**22 + 1, machine="elsewhere"))
    assert not is_dead(replace(me, started=""))
