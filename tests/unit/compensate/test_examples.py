"""The papers' examples, message by message and state by state."""

from __future__ import annotations

import pytest

from rollview.compensate.maintainer import Answered, AskFor
from rollview.consistency.bags import bag
from rollview.consistency.judge import judge
from rollview.lab.examples import EXAMPLES, Example
from rollview.lab.simulator import Simulation

BY_NAME = {example.name: example for example in EXAMPLES}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_every_version_and_the_level_are_as_stated(example: Example) -> None:
    done = example.run()
    told = done.history()
    assert told.at_rest
    assert tuple(version.rows for version in done.versions[1:]) == example.versions
    assert judge(told, believe=False).level is example.level


def _lines(name: str) -> list[str]:
    return [f"{line.kind} {line.source} {line.text}".replace("  ", " ") for line in BY_NAME[name].run().trace]


def test_example_1() -> None:
    assert _lines("strobe-1") == [
        "commit y insert(r2, [2,3])",
        "hear y U of y",
        "ask x Q1: {[2,3]} ⋈ r1",
        "answer x A1 = {[2,3,1]}",
        "hear x A1",
        "ask z Q2: {[2,3,1]} ⋈ r3",
        "commit x delete(r1, [1,2])",
        "hear x U of x",
        "publish V = ∅",
        "answer z A2 = {[2,3,1,4]}",
        "hear z A2",
        "publish V = {[1,2,3,4]}",
    ]


def test_example_2_goes_to_what_joins_with_what_is_known() -> None:
    asks = [line for line in _lines("strobe-2") if line.startswith("ask")]
    assert asks == ["ask x Q1: {[2,3]} ⋈ r1", "ask z Q2: {[2,3,1]} ⋈ r3"]


def test_example_3() -> None:
    told = _lines("strobe-3")
    assert told[:8] == _lines("strobe-1")[:8]
    assert told[8:] == ["answer z A2 = {[2,3,1,4]}", "hear z A2", "publish V = ∅"]


def test_example_3_keeps_the_delete_pending_and_in_the_action_list() -> None:
    example = BY_NAME["strobe-3"]
    done = Simulation(example.view, example.initial, example.transactions, example.make(example.view))
    done.commit()
    done.deliver("y")
    assert (done.state.actions, done.state.unanswered[1].pending) == ((), ())
    done.answer("x")
    done.deliver("x")
    done.commit()
    done.deliver("x")
    delete = example.transactions[1][0].updates[0]
    assert done.state.unanswered[2].pending == (delete,)
    assert done.state.actions == (delete,)


def test_example_4() -> None:
    assert _lines("strobe-4")[2:] == ["publish V = ∅", "publish V = {[3,4]}"]
    assert _lines("strobe-4-t")[2:] == ["publish V = {[3,4]}"]


def test_example_5() -> None:
    told = _lines("strobe-5")
    assert told == [
        "commit x insert(r1, [1,3])",
        "hear x U of x",
        "ask y Q1: {[1,3]} ⋈ r2",
        "commit y delete(r2, [3,4]) of T2",
        "commit x insert(r1, [2,3]) of T2",
        "hear y U of y",
        "answer y A1 = {[1,3,5]}",
        "hear y A1",
        "publish V = {[1,3,5]}",
        "hear x U of x",
        "ask y Q2: {[2,3]} ⋈ r2",
        "answer y A2 = {[2,3,5]}",
        "hear y A2",
        "publish V = {[1,3,5], [2,3,5]}",
    ]
    assert _lines("strobe-5-g") == [line for line in told if line != "publish V = {[1,3,5]}"]


def test_example_6() -> None:
    assert _lines("strobe-6")[6:] == [
        "commit x delete(r1, [1,2])",
        "hear x U of x",
        "answer z A2 = {[2,3,1,4]}",
        "hear z A2",
        "ask z Q3: {[2,3,1]} ⋈ r3",
        "answer z A3 = {[2,3,1,4]}",
        "hear z A3",
        "publish V = {[1,2,3,4]}",
        "publish V = ∅",
    ]


def test_example_7() -> None:
    assert _lines("strobe-7")[2:] == [
        "ask x Q1: {[2,3]} ⋈ r1",
        "commit x delete(r1, [1,2])",
        "hear x U of x",
        "answer x A1 = ∅",
        "hear x A1",
        "ask z Q2: {[2,3,1]} ⋈ r3",
        "answer z A2 = {[2,3,1,4]}",
        "hear z A2",
        "publish V = {[1,2,3,4]}",
        "publish V = ∅",
    ]


def _answers(name: str) -> list[object]:
    """The signed sum of each answer, projected."""
    example, found = BY_NAME[name], []
    done = Simulation(example.view, example.initial, example.transactions, example.make(example.view))
    for event in example.script.split(", "):
        kind, _, source = event.partition(" ")
        if kind == "answer":
            ask: AskFor = done.asks[source][0][1]
            signs = [term.sign for term in done.state.unanswered[ask.ask].terms]
            done.answer(source)
            message = done.mail[source, "units"][-1][1]
            assert isinstance(message, Answered)
            asked = done.state.unanswered[ask.ask].asked
            whole = dict(zip(asked, message.partials, strict=True))
            total: dict[object, int] = {}
            for place, sign in enumerate(signs):
                partial = whole.get(place, done.state.unanswered[ask.ask].terms[place].partial)
                if len(partial.have) == len(example.view.occurrences):
                    for row, count in example.view.finish(partial).items():
                        total[row] = total.get(row, 0) + sign * count
            found.append({row: count for row, count in total.items() if count})
        elif kind == "commit":
            done.commit()
        else:
            done.deliver(source)
    return found


def test_answers_of_eca() -> None:
    assert _answers("insert-anomaly-eca") == [bag([(1,), (4,)]), {}]
    assert _answers("eca-three-tables") == [bag([(4,)]), bag([(1,)]), {}]


def test_queries_of_eca_carry_the_compensations_of_compensations() -> None:
    example = BY_NAME["eca-three-tables"]
    done = Simulation(example.view, example.initial, example.transactions, example.make(example.view))
    formed = []
    for _ in range(3):
        done.commit()
        done.deliver("x")
        formed.append(done.state.unanswered[max(done.state.unanswered)].formed)
    signs = [[(term.sign, tuple(sorted(term.partial.have))) for term in terms] for terms in formed]
    assert signs == [
        [(1, ("R",))],
        [(1, ("T",)), (-1, ("R", "T"))],
        [(1, ("S",)), (-1, ("R", "S")), (-1, ("S", "T")), (1, ("R", "S", "T"))],
    ]
