"""Histories as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollview.consistency.judge import judge
from rollview.consistency.record import read_history, write_history
from rollview.errors import UsageError
from rollview.lab.examples import EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_what_was_written_is_read_again(example: Any) -> None:
    told = example.run().history()
    again = read_history(write_history(told))
    assert write_history(again) == write_history(told)
    assert judge(again, believe=False) == judge(told, believe=False)


def _broken(**changes: Any) -> str:
    told = json.loads(write_history(EXAMPLES[0].run().history()))
    return json.dumps({**told, **changes})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no JSON"),
        ("[]", "no history"),
        ("{}", "'view' is missing"),
        (_broken(versions=[]), "no versions"),
        (_broken(versions=[{"rows": [[1, 2, 3]]}]), "[1, 2, 3] is no row of the view"),
        (_broken(initial={"Q": [[1]]}), "no table 'Q'"),
        (_broken(initial={"R": [[1]]}), "is no row of table 'R'"),
        (_broken(units=[{"source": "x", "changes": [["R", "*", [1, 2]]]}]), "a change is + or -"),
        (_broken(units=[{"source": "y", "changes": [["R", "+", [1, 2]]]}]), "not at source 'y'"),
        (_broken(units=[{"source": "x", "changes": [], "transaction": "T"}] * 2), "two units at one source"),
    ],
)
def test_what_is_no_history_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError) as told:
        read_history(text)
    assert says in told.value.message
    assert told.value.hint


def test_columns_and_comparisons_must_exist() -> None:
    told = json.loads(write_history(EXAMPLES[0].run().history()))
    for changes, says in (({"shown": ["nope"]}, "no column nope"), ({"where": [["W", "~", 1]]}, "~ is no comparison")):
        with pytest.raises(UsageError, match=says):
            read_history(json.dumps({**told, "view": {**told["view"], **changes}}))


def test_a_claim_of_a_csn_needs_csns() -> None:
    with pytest.raises(UsageError, match="not every unit has one"):
        judge(read_history(_broken(versions=[{"rows": [], "csn": 1}])))
    units = [{"source": "x", "changes": [["S", "+", [2, 3]]], "csn": 2}, {"source": "x", "changes": [], "csn": 1}]
    with pytest.raises(UsageError, match="not in the order of their csns"):
        judge(read_history(_broken(units=units)))
