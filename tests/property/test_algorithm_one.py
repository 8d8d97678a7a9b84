"""Which of the six properties each form of the apply process breaks: so each of them is worth a test of its own."""

from __future__ import annotations

from random import Random

import pytest

from tests.property.algorithm_one import (
    Choose,
    History,
    Record,
    as_printed,
    broken_by,
    by_commits,
    closed_at_both_ends,
    random_history,
    without_step_2,
)

HISTORIES = 2000


def broken_in_random_histories(choose: Choose, *, coarse: int = 1) -> set[int]:
    found: set[int] = set()
    for seed in range(HISTORIES):
        history, rolls = random_history(Random(seed), coarse=coarse)
        found |= broken_by(choose, history, rolls)
    return found


def test_algorithm_1_as_printed_breaks_1_4_5_and_6() -> None:
    assert broken_in_random_histories(as_printed) == {1, 4, 5, 6}


def test_a_window_closed_at_both_ends_applies_twice() -> None:
    assert 2 in broken_in_random_histories(closed_at_both_ends, coarse=10)


def test_without_step_2_a_transaction_is_torn() -> None:
    assert 3 in broken_in_random_histories(without_step_2)


@pytest.mark.parametrize("coarse", [1, 10])
def test_algorithm_2_breaks_none(coarse: int) -> None:
    assert broken_in_random_histories(by_commits, coarse=coarse) == set()


def record(number: int, x: int, view: str, stamp: int, inserted: int | None = None) -> Record:
    return Record(number, x, view, stamp, stamp if inserted is None else inserted)


WORKED = {
    # The clock is read at 259 and the record inserted at 302; the roll to 300 happens in between (section 4.1).
    1: (History((record(0, 1, "deposits", 259, 302),), {1: 303}, ()), [(300, 301), (400, 401)]),
    # Withdrawn at 259, deposited at 301 (section 4.3).
    4: (
        History((record(0, 1, "withdrawals", 259), record(1, 1, "deposits", 301)), {1: 302}, ()),
        [(300, 303), (400, 401)],
    ),
    # x2 deposits into a3 at 259, and takes it from a2, where x1 puts it at 302 (section 4.4).
    5: (
        History(
            (
                record(0, 2, "deposits", 259),
                record(1, 1, "withdrawals", 301),
                record(2, 1, "deposits", 302),
                record(3, 2, "withdrawals", 304),
            ),
            {1: 303, 2: 305},
            ((1, 2),),
        ),
        [(300, 306), (400, 401)],
    ),
}


@pytest.mark.parametrize("broken", WORKED)
def test_the_examples_of_section_4(broken: int) -> None:
    history, rolls = WORKED[broken]
    assert {broken, 6} <= broken_by(as_printed, history, rolls)
    assert broken_by(by_commits, history, rolls) == set()


def test_debits_and_credits_are_out_of_balance_by_statement_times() -> None:
    """Section 6: a transaction debits at t1 and credits at t5, committing at t6; the view of credits is refreshed at t3
    by a transaction that commits at t4. By statement times the view seems to go with the debits."""

    def overlap(*valid: tuple[int, int]) -> bool:
        return max(start for start, _ in valid) < min(end for _, end in valid)

    forever = 1000
    by_statements = {"debits": (1, forever), "credits": (5, forever), "total_credits": (3, 5)}
    by_commit_times = {"debits": (6, forever), "credits": (6, forever), "total_credits": (4, 6)}
    rows = {"debits": 1, "credits": 1, "total_credits": 0}
    assert overlap(by_statements["debits"], by_statements["total_credits"])
    assert rows["debits"] != rows["total_credits"], "the answer that statement times allow"
    assert not overlap(by_commit_times["debits"], by_commit_times["total_credits"])
    assert overlap(by_commit_times["debits"], by_commit_times["credits"])
    assert rows["debits"] == rows["credits"]
