"""Single rules of the algorithms, each as small as it can be."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import rollview
from rollview.compensate.algorithms import ALGORITHMS
from rollview.compensate.c_strobe import CStrobe
from rollview.compensate.conventional import Conventional
from rollview.compensate.courier import Courier
from rollview.compensate.deadline import Deadline
from rollview.compensate.evaluation import VIEW as WHOLE_VIEW
from rollview.compensate.evaluation import inserted, next_ask, run_query
from rollview.compensate.g_strobe import GStrobe
from rollview.compensate.inbox import Inbox
from rollview.compensate.maintainer import Answered, AskFor, Due, Maintainer, Publish, Reported, Seen
from rollview.compensate.strobe import Strobe
from rollview.compensate.sweep import SweepMaintainer
from rollview.compensate.t_strobe import TStrobe, without_pairs
from rollview.consistency.bags import bag
from rollview.consistency.history import Update
from rollview.consistency.join_view import Partial, join, natural

VIEW = natural("r1(A*B)@x ⋈ r2(BC*)@y")


def ins(table: str, *row: int) -> Update:
    return Update(table, row, 1)


def dele(table: str, *row: int) -> Update:
    return Update(table, row, -1)


def told(source: str, number: int, *updates: Update) -> Reported:
    return Reported(source, number, updates)


def test_pairs_of_an_insert_and_a_later_delete_are_dropped() -> None:
    updates = [dele("r1", 1, 1), ins("r1", 1, 2), dele("r1", 1, 2), ins("r1", 1, 3), ins("r1", 2, 2), ins("r2", 2, 1)]
    assert without_pairs(VIEW, updates) == [dele("r1", 1, 1), *updates[3:]]


def test_a_transaction_is_one_query() -> None:
    machine = TStrobe(VIEW)
    _, said = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 3), ins("r1", 2, 3)))
    assert [type(one) for one in said] == [AskFor]


def _rows(found: dict[tuple[int, int], int]) -> tuple[Partial, ...]:
    return (Partial(frozenset(("r2",)), ("B", "C"), found),)


@pytest.mark.parametrize(
    ("seen", "has", "published"),
    [
        (Seen(0), {(3, 4): 1}, {(1, 3, 4): 1}),
        (Seen(1), {}, {(1, 3, 4): 1}),  # it saw the delete, which comes later
        (Seen(2), {(3, 5): 1}, {(1, 3, 4): 1}),  # it saw the insert too
        (Seen(2, frozenset((1,))), {(3, 4): 1, (3, 5): 1}, {(1, 3, 4): 1}),
    ],
)
def test_sweep_takes_back_what_was_seen_and_is_later(
    seen: Seen, has: dict[tuple[int, int], int], published: object
) -> None:
    machine = SweepMaintainer(VIEW)
    state, said = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 3)))
    assert isinstance(said[0], AskFor)
    assert said[0].partials[0].rows == {(3,): 1}
    state, _ = machine.on(state, told("y", 1, dele("r2", 3, 4)))
    state, _ = machine.on(state, told("y", 2, ins("r2", 3, 5)))
    state, said = machine.on(state, Answered("y", said[0].ask, _rows(has), seen))
    assert said[0] == Publish(published, {"x": 1})  # type: ignore[arg-type]


def test_sweep_adds_what_was_not_seen_and_is_earlier() -> None:
    machine = SweepMaintainer(VIEW)
    state, _ = machine.on(machine.begin({}, {}), told("y", 1, ins("r2", 3, 4)))
    state, _ = machine.on(state, Answered("x", 1, (Partial(frozenset(("r1",)), ("A", "B"), {}),), Seen(0)))
    state, said = machine.on(state, told("x", 1, ins("r1", 1, 3)))
    state, said = machine.on(state, Answered("y", 2, _rows({}), Seen(0)))
    assert said == (Publish({(1, 3, 4): 1}, {"y": 1, "x": 1}),)


def test_sweep_takes_back_parts_that_wait_for_their_transaction() -> None:
    machine = SweepMaintainer(VIEW)
    state, _ = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 3)))
    state, _ = machine.on(state, Reported("y", 1, (ins("r2", 3, 4),), "T", 2))
    state, said = machine.on(state, Answered("y", 1, _rows({(3, 4): 1}), Seen(1)))
    assert said == (Publish({}, {"x": 1}),)


def test_c_strobe_compares_whole_rows() -> None:
    """A key that is deleted and comes back as another row: only that row is taken out of Δ."""
    machine = CStrobe(VIEW)
    state, _ = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 3)))
    state, _ = machine.on(state, told("y", 1, dele("r2", 3, 4)))
    state, _ = machine.on(state, told("y", 2, ins("r2", 2, 4)))
    state, _ = machine.on(state, told("y", 3, dele("r2", 2, 4)))
    state, _ = machine.on(state, told("y", 4, ins("r2", 3, 4)))
    now = Partial(frozenset(("r1", "r2")), ("A", "B", "C"), {(1, 3, 4): 1})
    state, said = machine.on(state, Answered("y", 1, (now,), Seen(4)))
    assert said[0] == Publish({(1, 3, 4): 1}, {"x": 1})


def test_c_tstrobe_compensates_for_later_deletes_of_the_same_transaction() -> None:
    """Each insert is brought to the state right after it; readers see the end."""
    view = natural("r1(A*B)@x ⋈ r2(BC*)@x ⋈ r3(CD*)@y")
    machine = CStrobe(view, by_transaction=True)
    unit = told("x", 1, ins("r1", 1, 3), dele("r2", 3, 4), ins("r2", 3, 5))
    state, said = machine.on(machine.begin({}, {}), unit)
    state, said = machine.on(
        state, Answered("x", 1, (Partial(frozenset(("r1", "r2")), ("A", "B", "C"), {(1, 3, 5): 1}),), Seen(1))
    )
    assert isinstance(said[0], AskFor)
    ask = said[0]
    answer = Partial(frozenset(("r1", "r2", "r3")), ("A", "B", "C", "D"), {})
    state, said = machine.on(state, Answered("y", ask.ask, (answer,), Seen(0)))
    assert isinstance(said[0], AskFor)
    assert [one.rows for one in said[0].partials] == [{(1, 3, 4): 1}]
    assert not any(isinstance(one, Publish) for one in said)


def test_grouped_compensations_are_one_query_for_each_table() -> None:
    view = natural("r1(A*B)@x ⋈ r2(BC*)@y ⋈ r3(CD*)@z")
    for grouped, queries in ((True, 2), (False, 4)):
        machine = CStrobe(view, grouped=grouped)
        state, _ = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 3)))
        for number in (1, 2):
            state, _ = machine.on(state, told("y", number, dele("r2", 3, number)))
            state, _ = machine.on(state, told("z", number, dele("r3", number, number)))
        nothing = Partial(frozenset(("r1", "r2")), ("A", "B", "C"), {})
        state, said = machine.on(state, Answered("y", 1, (nothing,), Seen(2)))
        assert len(said) == queries


# Messages


def test_a_gap_is_waited_for_and_a_duplicate_dropped() -> None:
    first, second, third = (told("x", number, ins("r1", number, 1)) for number in (1, 2, 3))
    inbox = Inbox({})
    inbox, ready = inbox.take(second)
    assert ready == ()
    inbox, ready = inbox.take(third)
    assert ready == ()
    inbox, ready = inbox.take(first)
    assert ready == (first, second, third)
    for old in (first, second, third):
        inbox, ready = inbox.take(old)
        assert ready == ()
    assert inbox.early == ()


def test_an_answer_is_held_until_all_that_it_saw_has_come() -> None:
    answer = Answered("x", 1, (), Seen(2))
    inbox, ready = Inbox({"x": 1}).take(answer)
    assert ready == ()
    second = told("x", 2, ins("r1", 1, 1))
    inbox, ready = inbox.take(second)
    assert ready == (second, answer)


@pytest.mark.parametrize("seen", [Seen(1, frozenset((1,))), Seen(0)])
def test_an_answer_that_saw_too_little_is_asked_for_again(seen: Seen) -> None:
    machine = Courier(Strobe(VIEW))
    state, _ = machine.on(machine.begin({}, {}), told("y", 1, ins("r2", 3, 4)))
    state, said = machine.on(state, told("x", 1, ins("r1", 1, 3)))
    ask = said[0]
    assert isinstance(ask, AskFor)
    assert ask.source == "y"
    nothing = Partial(frozenset(("r1", "r2")), ("A", "B", "C"), {})
    state, said = machine.on(state, Answered("y", ask.ask, (nothing,), seen))
    assert said == (ask,)
    found = Partial(frozenset(("r1", "r2")), ("A", "B", "C"), {(1, 3, 4): 1})
    state, said = machine.on(state, Answered("y", ask.ask, (found,), Seen(1)))
    assert said == ()
    assert ask.ask not in state.asks
    state, said = machine.on(state, Answered("y", ask.ask, (found,), Seen(1)))
    assert said == ()


# Never quiet


def test_a_view_that_is_due_is_published_although_sources_are_never_quiet() -> None:
    machine = Deadline(Strobe(VIEW), CStrobe(VIEW))
    state = machine.begin({}, {})
    published: list[Publish] = []
    for number in range(1, 4):
        state, said = machine.on(state, told("x", number, ins("r1", number, 3)))
        assert [type(one) for one in said] == [AskFor]
    state, said = machine.on(state, Due())
    ask = said[0]
    assert isinstance(ask, AskFor)
    assert ask.ask == 4
    for old in (1, 2, 3):
        state, said = machine.on(state, Answered("y", old, (), Seen(0)))
        assert said == ()
    for number in range(1, 4):
        found = Partial(frozenset(("r1", "r2")), ("A", "B", "C"), {(number, 3, 9): 1})
        state, said = machine.on(state, Answered("y", ask.ask, (found,), Seen(0)))
        published += [one for one in said if isinstance(one, Publish)]
        if number < 3:
            assert isinstance(said[-1], AskFor)
            ask = said[-1]
    assert [one.through for one in published] == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert not state.hurried
    assert machine.on(state, Due())[1] == ()


def test_the_pure_rooms_import_nothing_but_the_standard_library_core_and_errors() -> None:
    source = Path(rollview.__file__).parent
    found = set[str]()
    for room in ("consistency", "compensate"):
        for path in (source / room).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom):
                    found.add(str(node.module))
                elif isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
    ours = {name.split(".")[1] for name in found if name.startswith("rollview.")}
    assert ours == {"consistency", "compensate", "core", "errors"}
    assert {name.split(".")[0] for name in found} - {"rollview"} <= set(sys.stdlib_module_names)


def test_bags_of_a_deleted_key_leave_the_answer() -> None:
    """Without what is pending the answer of a query would bring a deleted row back."""
    machine = Strobe(VIEW)
    state, said = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 3)))
    state, _ = machine.on(state, told("x", 2, dele("r1", 1, 3)))
    found = Partial(frozenset(("r1", "r2")), ("A", "B", "C"), {(1, 3, 4): 1})
    state, said = machine.on(state, Answered("y", 1, (found,), Seen(0)))
    assert said == (Publish(bag([]), {"x": 2}),)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_who_is_due_and_has_nothing_to_publish_says_nothing(name: str) -> None:
    machine = ALGORITHMS[name](VIEW)
    state = machine.begin({(1, 3, 4): 1}, {"x": 0, "y": 0})
    assert machine.on(state, Due()) == (state, ())


@pytest.mark.parametrize(
    ("text", "asked", "keys"),
    [
        # What joins with the change comes first, whatever its place.
        ("r1(A*B)@x ⋈ r3(C*D)@z ⋈ r2(B*C)@y", "r2", {(3,): 1}),
        # Where nothing joins, the tables multiply.
        ("r1(A*B)@x ⋈ r2(C*D)@y", "r2", {(): 1}),
    ],
)
def test_sweep_goes_on_to_what_joins(text: str, asked: str, keys: object) -> None:
    machine = SweepMaintainer(natural(text))
    _, said = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 3)))
    (ask,) = said
    assert isinstance(ask, AskFor)
    assert ask.wanted == ((asked,),)
    assert ask.partials[0].rows == keys


def test_deletes_compensate_in_one_order_only() -> None:
    """Q, Q⟨d1⟩, Q⟨d2⟩ and Q⟨d1, d2⟩, one ask each: not Q⟨d2, d1⟩ too."""
    machine = CStrobe(natural("r1(A*B)@x ⋈ r2(B*C)@y ⋈ r3(C*D)@z ⋈ r4(D*E)@w"), grouped=False)
    state, said = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 2)))
    for event in (told("y", 1, dele("r2", 2, 3)), told("z", 1, dele("r3", 3, 4))):
        state, more = machine.on(state, event)
        assert more == ()
    asked, waiting = 0, list(said)
    while waiting:
        ask = waiting.pop(0)
        if not isinstance(ask, AskFor):
            continue
        asked += 1
        pairs = zip(ask.partials, ask.wanted, strict=True)
        partials = tuple(_with_nothing(machine, one, wanted) for one, wanted in pairs)
        state, more = machine.on(state, Answered(ask.source, ask.ask, partials, Seen(1)))
        waiting += more
    assert asked == 4


def _with_nothing(machine: CStrobe, partial: Partial, wanted: tuple[str, ...]) -> Partial:
    for name in wanted:
        partial = join(partial, machine.view.partial(name, {}))
    return partial


def test_inserts_of_one_key_are_dropped_only_with_a_delete() -> None:
    updates = [ins("r1", 1, 2), ins("r1", 1, 3)]
    assert without_pairs(VIEW, updates) == updates


@pytest.mark.parametrize(
    ("text", "source", "wanted"),
    [
        pytest.param("r1(A*B)@x ⋈ r3(C*D)@z ⋈ r2(B*C)@y", "y", ("r2",), id="r3 joins with r2 only"),
        pytest.param("r1(A*B)@x ⋈ r2(B*C)@y ⋈ r3(C*D)@y", "y", ("r2", "r3"), id="in turn"),
        pytest.param("r1(A*B)@x ⋈ r2(C*D)@y", "y", ("r2",), id="nothing joins: they multiply"),
    ],
)
def test_a_query_goes_on_to_a_source_whose_tables_join(text: str, source: str, wanted: tuple[str, ...]) -> None:
    view = natural(text)
    _, ask = next_ask(view, run_query(inserted(view, WHOLE_VIEW, "r1", {(1, 3): 1})), 1)
    assert ask is not None
    assert (ask.source, ask.wanted) == (source, (wanted,))


def test_sweep_asks_no_further_where_nothing_joins() -> None:
    machine = SweepMaintainer(natural("r1(A*B)@x ⋈ r2(B*C)@y ⋈ r3(C*D)@z"))
    state, _ = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 3)))
    assert machine.on(state, Due()) == (state, ())
    _, said = machine.on(state, Answered("y", 1, _rows({}), Seen(0)))
    assert said == (Publish({}, {"x": 1}),)


def test_sweep_takes_an_answer_that_saw_no_prefix_and_corrects_it() -> None:
    machine = Courier(SweepMaintainer(VIEW))
    state, _ = machine.on(machine.begin({}, {}), told("y", 1, ins("r2", 3, 4)))
    nothing = Partial(frozenset(("r1",)), ("A", "B"), {})
    state, _ = machine.on(state, Answered("x", 1, (nothing,), Seen(0)))
    state, _ = machine.on(state, told("x", 1, ins("r1", 1, 3)))
    _, said = machine.on(state, Answered("y", 2, _rows({}), Seen(0)))
    assert said == (Publish({(1, 3, 4): 1}, {"x": 1, "y": 1}),)


@pytest.mark.parametrize("algorithm", [Strobe, TStrobe, Conventional])
def test_an_answer_counts_once(algorithm: type[Strobe] | type[TStrobe] | type[Conventional]) -> None:
    machine = algorithm(VIEW)
    state, said = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 3)))  # type: ignore[arg-type]
    found = Answered("y", 1, (Partial(frozenset(("r1", "r2")), ("A", "B", "C"), {(1, 3, 4): 1}),), Seen(0))
    state, said = machine.on(state, found)  # type: ignore[arg-type]
    assert [one.rows for one in said if isinstance(one, Publish)] == [{(1, 3, 4): 1}]
    assert machine.on(state, found) == (state, ())  # type: ignore[arg-type]


@pytest.mark.parametrize("under_way", [False, True])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_answer_that_nobody_asked_for_changes_nothing(name: str, under_way: bool) -> None:
    machine = ALGORITHMS[name](VIEW)
    state = machine.begin({(2, 3, 4): 1}, {})
    if under_way:
        state, _ = machine.on(state, told("x", 1, ins("r1", 1, 5)))
    stranger = Partial(frozenset(("r1", "r2")), ("A", "B", "C"), {(1, 3, 5): 1})
    for number in (0, 7):
        assert machine.on(state, Answered("y", number, (stranger,), Seen(0))) == (state, ())


def test_who_is_hurried_already_is_not_hurried_again() -> None:
    machine = Deadline(Strobe(VIEW), CStrobe(VIEW))
    state, _ = machine.on(machine.begin({}, {}), told("x", 1, ins("r1", 1, 3)))
    state, _ = machine.on(state, Due())
    assert state.hurried
    assert machine.on(state, Due()) == (state, ())


def test_a_version_that_is_published_while_a_part_waits_reflects_no_prefix() -> None:
    machine = GStrobe(VIEW, publish_early=True)
    state, _ = machine.on(machine.begin({(1, 3, 4): 1}, {}), Reported("y", 1, (ins("r2", 3, 5),), "T", 2))
    _, said = machine.on(state, told("x", 1, dele("r1", 1, 3)))
    assert said == (Publish({}, None),)


REFERENCES = natural("r1(A*B)@x ⋈ r2(B*C)@y")


@pytest.mark.parametrize("machine", [Strobe(REFERENCES), TStrobe(REFERENCES), GStrobe(REFERENCES), CStrobe(REFERENCES)])
def test_what_a_key_in_the_view_answers_is_not_asked(machine: Maintainer) -> None:
    """Section 7 of the paper: B is the key of r2, so [1,2,3] in the view says that r2 has [2,3]."""
    _, said = machine.on(machine.begin({(1, 2, 3): 1}, {}), told("x", 1, ins("r1", 4, 2)))
    assert said == (Publish({(1, 2, 3): 1, (4, 2, 3): 1}, {"x": 1}),)
    _, said = machine.on(machine.begin({(1, 2, 3): 1}, {}), told("x", 1, ins("r1", 4, 5)))
    assert [type(one) for one in said] == [AskFor]
    _, said = machine.on(machine.begin({(1, 2, 3): 1}, {}), told("y", 1, ins("r2", 7, 3)))
    assert [type(one) for one in said] == [AskFor], "A, not B, is the key of r1"


def test_the_view_answers_nothing_of_what_was_deleted_since() -> None:
    machine = Strobe(REFERENCES)
    state, _ = machine.on(machine.begin({(1, 2, 3): 1}, {}), told("x", 1, ins("r1", 9, 9)))
    state, _ = machine.on(state, told("y", 1, dele("r2", 2, 3)))
    _, said = machine.on(state, told("x", 2, ins("r1", 4, 2)))
    assert [type(one) for one in said] == [AskFor]


def test_a_view_that_does_not_show_all_of_a_row_answers_nothing() -> None:
    machine = Strobe(natural("r1(A*B)@x ⋈ r2(B*C)@y", shown="AB"))
    _, said = machine.on(machine.begin({(1, 2): 1}, {}), told("x", 1, ins("r1", 4, 2)))
    assert [type(one) for one in said] == [AskFor]


def test_a_table_without_a_key_is_asked() -> None:
    view = natural("r1(A*B)@x ⋈ r2(BC)@y")
    _, ask = next_ask(view, run_query(inserted(view, WHOLE_VIEW, "r1", {(4, 2): 1})), 1, {(1, 2, 3): 1})
    assert ask is not None


def test_a_key_that_is_all_there_is_tells_a_row_that_is_all_that_is_shown() -> None:
    view = natural("r1(A)@x ⋈ r2(A*B)@y")
    query, ask = next_ask(view, run_query(inserted(view, WHOLE_VIEW, "r1", {(2,): 1})), 1, {(2, 3): 1})
    assert ask is None
    assert [term.partial.rows for term in query.terms] == [{(2, 3): 1}]


@pytest.mark.parametrize(("known", "asks"), [({(1, 2, 3): 1}, True), ({(1, 2, 3): 1, (8, 6, 7): 1}, False)])
def test_a_term_is_asked_for_unless_the_view_answers_all_of_it(known: dict[tuple[int, ...], int], asks: bool) -> None:
    terms = inserted(REFERENCES, WHOLE_VIEW, "r1", {(4, 2): 1, (5, 6): 1})
    _, ask = next_ask(REFERENCES, run_query(terms), 1, known)
    assert (ask is not None) is asks
