"""Sets of MySQL's global transaction ids, against sets of their numbers."""

from __future__ import annotations

import random

import pytest

from rollview.sources.mysql.gtids import NOWHERE, GtidSet, NotUnderstoodError

ONE, OTHER = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "da037fdc-e149-11f1-8b16-02fc00000001"


def told(numbers: set[tuple[str, int]]) -> GtidSet:
    return GtidSet.parse(",".join(f"{server}:{number}" for server, number in numbers) or NOWHERE)


def test_they_are_told_as_the_server_does() -> None:
    text = f"{OTHER.upper()}:5,\n{ONE}:1-3:4:7-9:8"
    assert str(GtidSet.parse(text)) == f"{ONE}:1-4:7-9,{OTHER}:5"
    assert str(GtidSet.parse("")) == NOWHERE
    assert len(GtidSet.parse(text)) == 8
    assert not GtidSet.parse(NOWHERE)


@pytest.mark.parametrize("seed", range(30))
def test_they_are_sets(seed: int) -> None:
    chance = random.Random(seed)
    one, other = ({(chance.choice((ONE, OTHER)), chance.randint(1, 12)) for _ in range(8)} for _ in range(2))
    assert told(one | other) == told(one) | told(other)
    assert told(one - other) == told(one).without(told(other))
    assert len(told(one)) == len(one)
    assert (told(one) >= told(other)) == (one >= other)
    assert told(one | other) >= told(one)
    assert GtidSet.parse(str(told(one))) == told(one)


@pytest.mark.parametrize("text", [f"{ONE}:payroll:1-3", f"{ONE}:1-3:payroll:1", "0-1-7", ONE, f"{ONE}:", f"{ONE}:1-x"])
def test_what_is_no_such_id_is_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstoodError):
        GtidSet.parse(text)
