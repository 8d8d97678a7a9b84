"""TxnWrap as printed, and SWEEP beside it, over six relations of 100,000 rows: literal versions, literal compensation.

Chen, Liu and Rundensteiner, *Multiversion Based View Maintenance Over Distributed Data Sources*, §3 to §6. Rows join
one to one by key, and the view joins all six. An update gives one row of one relation another value, and is a
transaction.

Law: a tuple of a wrapper is there at local id t iff V_Start ≤ t and (V_End is open or t < V_End). The view after the
update of TxnID τ is the join of all wrappers at τ, whatever sources do meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

RELATIONS = 6
TxnId = tuple[int, ...]
"""By relation: the local id of the last update that is seen."""
ViewRow = tuple[int, ...]
"""The key, and the value of each relation."""


@dataclass(frozen=True, slots=True)
class SourceUpdate:
    """``local``: its number at its source; ``txn``: all that a maintenance of it sees, itself included."""

    relation: int
    key: int
    value: int
    local: int
    txn: TxnId
    at: float = 0.0


def random_updates(random: Random, number: int, keys: int, apart: float = 0.0) -> tuple[SourceUpdate, ...]:
    """``apart``: milliseconds from one update to the next."""
    seen, made = [0] * RELATIONS, []
    for place in range(number):
        relation = random.randrange(RELATIONS)
        seen[relation] += 1
        change = (random.randrange(keys), random.randrange(1, 1_000_000))
        made.append(SourceUpdate(relation, *change, seen[relation], tuple(seen), place * apart))
    return tuple(made)


@dataclass(slots=True)
class TupleVersion:
    value: int
    v_start: int
    v_end: int | None = None

    def is_there(self, at: int) -> bool:
        return self.v_start <= at and (self.v_end is None or at < self.v_end)


@dataclass(slots=True)
class Wrapper:
    """A versioned relation of ``rows`` tuples; those that never changed have value 0 from local id 0 on."""

    rows: int
    versions: dict[int, list[TupleVersion]] = field(default_factory=dict)
    size: int = 0

    def __post_init__(self) -> None:
        self.size = self.rows

    def update(self, one: SourceUpdate) -> None:
        held = self.versions.setdefault(one.key, [TupleVersion(0, 0)])
        held[-1].v_end = one.local
        held.append(TupleVersion(one.value, one.local))
        self.size += 1

    def read(self, key: int, at: int) -> int:
        (there,) = [held.value for held in self.versions.get(key, [TupleVersion(0, 0)]) if held.is_there(at)]
        return there

    def clean_up(self, key: int, oldest: int) -> None:
        """``oldest``: the local id that the oldest maintenance still to come reads; a tuple that ended by then goes."""
        held = self.versions[key]
        self.versions[key] = [one for one in held if one.v_end is None or one.v_end > oldest]
        self.size -= len(held) - len(self.versions[key])


def versioned_delta(wrappers: Sequence[Wrapper], one: SourceUpdate) -> Counter[ViewRow]:
    """What the update changes in the view, all other relations read as of its TxnID."""
    before = tuple(local - (place == one.relation) for place, local in enumerate(one.txn))
    old, new = (_joined(wrappers, one.key, txn) for txn in (before, one.txn))
    return Counter({new: 1}) if old == new else Counter({old: -1, new: 1})


def _joined(wrappers: Sequence[Wrapper], key: int, txn: TxnId) -> ViewRow:
    return (key, *(wrapper.read(key, local) for wrapper, local in zip(wrappers, txn, strict=True)))


@dataclass(slots=True)
class UnversionedSources:
    """Relations without versions: each answers as it is when it is asked."""

    updates: Sequence[SourceUpdate]

    def answer(self, relation: int, key: int, now: float) -> int:
        own = [one for one in self.updates if (one.relation, one.key) == (relation, key) and one.at <= now]
        return own[-1].value if own else 0

    def concurrent(self, one: SourceUpdate, relation: int, now: float) -> list[SourceUpdate]:
        """Updates of the relation that an answer shows and the maintenance of ``one`` must not see, oldest first."""
        after = one.txn[relation]
        return [
            other for other in self.updates if other.relation == relation and other.local > after and other.at <= now
        ]

    def before(self, one: SourceUpdate) -> int:
        """The value that an update replaced."""
        return self._value(one.relation, one.key, one.local - 1)

    def _value(self, relation: int, key: int, local: int) -> int:
        own = [u for u in self.updates if (u.relation, u.key) == (relation, key) and u.local <= local]
        return own[-1].value if own else 0

    def compensated(self, answer: int, one: SourceUpdate, relation: int, concurrent: Sequence[SourceUpdate]) -> int:
        """SWEEP: the concurrent updates taken out of the answer, here and without asking again."""
        if not any(other.key == one.key for other in concurrent):
            return answer
        return self._value(relation, one.key, one.txn[relation])


def view_change(updates: Sequence[SourceUpdate]) -> Counter[ViewRow]:
    """What all of them together change in the view, from nothing but the last values: the oracle."""
    last: dict[int, list[int]] = {}
    for one in updates:
        last.setdefault(one.key, [0] * RELATIONS)[one.relation] = one.value
    changed = Counter[ViewRow]()
    for key, values in last.items():
        changed[key, *values] += 1
        changed[key, *([0] * RELATIONS)] -= 1
    return Counter({row: count for row, count in changed.items() if count})
