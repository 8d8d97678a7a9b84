"""The papers' worked examples, and where ours differ, as scripts of events.

Law: an example's versions and level are what the papers state, or what we state against them; tests compare each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rollview.compensate.algorithms import ALGORITHMS
from rollview.compensate.courier import Courier
from rollview.compensate.eca import Eca
from rollview.compensate.g_strobe import GStrobe
from rollview.compensate.maintainer import Maintainer
from rollview.compensate.strobe import Strobe
from rollview.consistency.bags import Bag, Row, bag
from rollview.consistency.history import HistoryUnit, Update
from rollview.consistency.join_view import JoinView, natural
from rollview.consistency.levels import Level
from rollview.lab.simulator import Channels, GlobalUnit, Simulation

ECA_PAPER = "Zhuge et al., View Maintenance in a Warehousing Environment"
STROBE_PAPER = "Zhuge et al., The Strobe Algorithms"
OURS = "rollview"


@dataclass(frozen=True)
class Example:
    """``script``: events by name, each of a source: commit, hear x, answer y. ``versions`` follow the first extent."""

    name: str
    title: str
    paper: str
    make: Callable[[JoinView], Maintainer]
    view: JoinView
    initial: Mapping[str, Bag]
    transactions: tuple[GlobalUnit, ...]
    script: str
    versions: tuple[Bag, ...]
    level: Level
    channels: Channels = field(default_factory=Channels)

    def run(self) -> Simulation:
        simulation = Simulation(self.view, self.initial, self.transactions, self.make(self.view), self.channels)
        for event in self.script.split(", "):
            kind, _, rest = event.partition(" ")
            if kind == "commit":
                simulation.commit()
            elif kind == "answer":
                simulation.answer(rest)
            else:
                source, _, channel = rest.partition(" ")
                simulation.deliver(source, channel or "units")
        return simulation


def rows(*some: Row) -> Bag:
    return bag(some)


def unit(source: str, *updates: tuple[str, Row]) -> GlobalUnit:
    """A transaction of one source: inserts as ``+r1``, deletes as ``-r1``."""
    return (_part(source, updates, None),)


def over(name: str, **parts: Iterable[tuple[str, Row]]) -> GlobalUnit:
    """A global transaction."""
    return tuple(_part(source, updates, name) for source, updates in parts.items())


def _part(source: str, updates: Iterable[tuple[str, Row]], name: str | None) -> HistoryUnit:
    made = tuple(Update(table[1:], row, 1 if table[0] == "+" else -1) for table, row in updates)
    return HistoryUnit(source, made, name)


_TWO = natural("R(WX)@x ⋈ S(XY)@x", "W")
_THREE = natural("R(WX)@x ⋈ S(XY)@x ⋈ T(YZ)@x", "W")
_STROBE = natural("r1(A*B)@x ⋈ r2(B*C*)@y ⋈ r3(CD*)@z")
_GLOBAL = natural("r1(A*B)@x ⋈ r2(BC*)@y")
_ONE = natural("r1(A*B)@x")

_BOTH_THEN_ANSWERS = "commit, hear x, commit, hear x, answer x, hear x, answer x, hear x"
_INSERTS = (unit("x", ("+S", (2, 3))), unit("x", ("+R", (4, 2))))
_DELETES = (unit("x", ("-R", (1, 2))), unit("x", ("-S", (2, 3))))
_THREE_INSERTS = (unit("x", ("+R", (4, 2))), unit("x", ("+T", (5, 3))), unit("x", ("+S", (2, 5))))
_THREE_SCRIPT = "commit, hear x, commit, hear x, commit, hear x" + ", answer x, hear x" * 3
_STROBE_FIRST = {"r1": rows((1, 2)), "r3": rows((3, 4))}
_STROBE_UNITS = (unit("y", ("+r2", (2, 3))), unit("x", ("-r1", (1, 2))))
_LATE = "commit, hear y, answer x, hear x, commit, hear x, answer z, hear z"
_ROW = rows((1, 2, 3, 4))
_EXAMPLE_5 = (
    unit("x", ("+r1", (1, 3))),
    over("T2", y=[("-r2", (3, 4))], x=[("+r1", (2, 3))]),
)
_SCRIPT_5 = "commit, hear x, commit, hear y, answer y, hear y, hear x, answer y, hear y"
_FIRST_5 = {"r2": rows((3, 4), (3, 5))}
_HELD_FIRST = {"r1": rows((0, 3)), "r2": rows((3, 4), (3, 5))}
_NO_VECTOR = rows((0, 3, 4), (0, 3, 5), (1, 3, 5))


def _holding(view: JoinView) -> Maintainer:
    """T-Strobe with the paper's holding queue."""
    return GStrobe(view, publish_early=True)


EXAMPLES: tuple[Example, ...] = (
    Example(
        "insert-anomaly",
        "two inserts, maintained as if the source stood still",
        ECA_PAPER,
        ALGORITHMS["conventional"],
        _TWO,
        {"R": rows((1, 2))},
        _INSERTS,
        _BOTH_THEN_ANSWERS,
        (rows((1,), (4,)), rows((1,), (4,), (4,))),
        Level.NONE,
    ),
    Example(
        "insert-anomaly-eca",
        "the same, with ECA",
        ECA_PAPER,
        ALGORITHMS["eca"],
        _TWO,
        {"R": rows((1, 2))},
        _INSERTS,
        _BOTH_THEN_ANSWERS,
        (rows((1,), (4,)),),
        Level.STRONG,
    ),
    Example(
        "delete-anomaly",
        "two deletes, maintained as if the source stood still",
        ECA_PAPER,
        ALGORITHMS["conventional"],
        _TWO,
        {"R": rows((1, 2)), "S": rows((2, 3))},
        _DELETES,
        _BOTH_THEN_ANSWERS,
        (rows((1,)), rows((1,))),
        Level.NONE,
    ),
    Example(
        "delete-anomaly-eca",
        "the same, with ECA",
        ECA_PAPER,
        ALGORITHMS["eca"],
        _TWO,
        {"R": rows((1, 2)), "S": rows((2, 3))},
        _DELETES,
        _BOTH_THEN_ANSWERS,
        (rows(),),
        Level.COMPLETE,
    ),
    Example(
        "eca-three-tables",
        "three inserts; compensations are compensated too",
        ECA_PAPER,
        ALGORITHMS["eca"],
        _THREE,
        {"R": rows((1, 2))},
        _THREE_INSERTS,
        _THREE_SCRIPT,
        (rows((1,), (4,)),),
        Level.COMPLETE,
    ),
    Example(
        "eca-at-once",
        "the same, each answer added when it comes: [4] alone never was",
        OURS,
        lambda view: Eca(view, collect=False),
        _THREE,
        {"R": rows((1, 2))},
        _THREE_INSERTS,
        _THREE_SCRIPT,
        (rows((4,)), rows((1,), (4,)), rows((1,), (4,))),
        Level.CONVERGENT,
    ),
    Example(
        "eca-bags",
        "a row that is there twice is shown twice",
        ECA_PAPER,
        ALGORITHMS["eca"],
        _TWO,
        {"R": rows((1, 2)), "S": rows((2, 4))},
        (unit("x", ("+S", (2, 3))),),
        "commit, hear x, answer x, hear x",
        (rows((1,), (1,)),),
        Level.COMPLETE,
    ),
    Example(
        "strobe-1",
        "example 1: a delete overtakes a query, maintained as if sources stood still",
        STROBE_PAPER,
        ALGORITHMS["conventional"],
        _STROBE,
        _STROBE_FIRST,
        _STROBE_UNITS,
        _LATE,
        (rows(), _ROW),
        Level.NONE,
    ),
    Example(
        "strobe-2",
        "example 2: the sources are asked one after another",
        STROBE_PAPER,
        ALGORITHMS["strobe"],
        _STROBE,
        _STROBE_FIRST,
        (unit("y", ("+r2", (2, 3))),),
        "commit, hear y, answer x, hear x, answer z, hear z",
        (_ROW,),
        Level.COMPLETE,
    ),
    Example(
        "strobe-3",
        "example 3: Strobe keeps the delete until the query is answered",
        STROBE_PAPER,
        ALGORITHMS["strobe"],
        _STROBE,
        _STROBE_FIRST,
        _STROBE_UNITS,
        _LATE,
        (rows(),),
        # The row appears only between the two updates, if r2's comes first; the other order never shows it.
        Level.COMPLETE,
    ),
    Example(
        "strobe-4",
        "example 4: Strobe shows the middle of a transaction",
        STROBE_PAPER,
        ALGORITHMS["strobe"],
        _ONE,
        {"r1": rows((1, 2))},
        (unit("x", ("-r1", (1, 2)), ("+r1", (3, 4))),),
        "commit, hear x",
        (rows(), rows((3, 4))),
        Level.CONVERGENT,
    ),
    Example(
        "strobe-4-t",
        "example 4: T-Strobe does not",
        STROBE_PAPER,
        ALGORITHMS["t-strobe"],
        _ONE,
        {"r1": rows((1, 2))},
        (unit("x", ("-r1", (1, 2)), ("+r1", (3, 4))),),
        "commit, hear x",
        (rows((3, 4)),),
        Level.COMPLETE,
    ),
    Example(
        "strobe-5",
        "example 5: T-Strobe and a global transaction",
        STROBE_PAPER,
        _holding,
        _GLOBAL,
        _FIRST_5,
        _EXAMPLE_5,
        _SCRIPT_5,
        (rows((1, 3, 5)), rows((1, 3, 5), (2, 3, 5))),
        Level.WEAK,
    ),
    Example(
        "strobe-5-g",
        "example 5: G-Strobe waits for the whole of it",
        STROBE_PAPER,
        ALGORITHMS["g-strobe"],
        _GLOBAL,
        _FIRST_5,
        _EXAMPLE_5,
        _SCRIPT_5,
        (rows((1, 3, 5), (2, 3, 5)),),
        Level.STRONG,
    ),
    Example(
        "strobe-6",
        "example 6: C-Strobe shows the state after every update",
        STROBE_PAPER,
        ALGORITHMS["c-strobe"],
        _STROBE,
        _STROBE_FIRST,
        _STROBE_UNITS,
        _LATE + ", answer z, hear z",
        (_ROW, rows()),
        Level.COMPLETE,
    ),
    Example(
        "strobe-7",
        "example 7: C-Strobe asks again for what a delete took away",
        STROBE_PAPER,
        ALGORITHMS["c-strobe"],
        _STROBE,
        _STROBE_FIRST,
        _STROBE_UNITS,
        "commit, hear y, commit, hear x, answer x, hear x, answer z, hear z",
        (_ROW, rows()),
        Level.COMPLETE,
    ),
    Example(
        "held-parts",
        "T-Strobe that holds parts shows rows of no state at all",
        OURS,
        _holding,
        _GLOBAL,
        _HELD_FIRST,
        _EXAMPLE_5,
        _SCRIPT_5,
        (_NO_VECTOR, rows((0, 3, 5), (1, 3, 5), (2, 3, 5))),
        Level.CONVERGENT,
    ),
    Example(
        "overtaken-part",
        "a held part that a later update of its source overtakes",
        OURS,
        lambda view: GStrobe(view, hold=False),
        _GLOBAL,
        {"r1": rows((1, 3)), "r2": rows((3, 4))},
        (over("T1", y=[("-r2", (3, 4))], x=[("+r1", (2, 3))]), unit("y", ("+r2", (3, 4)))),
        "commit, commit, hear y, hear y, answer x, hear x, answer y, hear x, hear y",
        (rows((2, 3, 4)),),
        Level.NONE,
    ),
    Example(
        "two-channels",
        "answers and updates on two channels",
        OURS,
        Strobe,
        _GLOBAL,
        _HELD_FIRST,
        (unit("x", ("+r1", (1, 3))), unit("y", ("-r2", (3, 4)))),
        "commit, hear x, commit, answer y, hear y answers, hear y",
        (_NO_VECTOR, rows((0, 3, 5), (1, 3, 5))),
        Level.CONVERGENT,
        Channels(apart=True),
    ),
    Example(
        "two-channels-held",
        "the same, an answer held until all that it saw has come",
        OURS,
        lambda view: Courier(Strobe(view)),
        _GLOBAL,
        _HELD_FIRST,
        (unit("x", ("+r1", (1, 3))), unit("y", ("-r2", (3, 4)))),
        "commit, hear x, commit, answer y, hear y answers, hear y",
        (rows((0, 3, 5), (1, 3, 5)),),
        Level.STRONG,
        Channels(apart=True),
    ),
)
