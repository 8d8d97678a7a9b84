"""Figure 4's TxnIDs, the meta relations of figures 5 and 6, and example 2, which loses a row when it is reordered."""

from __future__ import annotations

from rollview.lab import find_experiment
from rollview.lab.meta_relations import MetaEntry, VersionedTuple, example_two, figure_four


def test_figure_four_has_the_printed_ids_and_wrappers() -> None:
    ids, customer, flights = figure_four()
    assert ids == [(1, 0), (1, 1), (2, 1), (2, 2)]
    assert customer.tuples[2] == VersionedTuple(("Ben", "CA", "213"), 1)
    assert customer.meta == [
        MetaEntry("C", "Name", "C", "First-Last", 0, 2),
        MetaEntry("C", "Add."),
        MetaEntry("C", "Phone"),
        MetaEntry("C", "First-Last", v_start=2),
    ]
    assert [(one.values[0], one.v_start, one.v_end) for one in flights.tuples] == [
        ("Tom", 0, None),
        ("Ben", 1, None),
        ("Sue", 2, None),
    ]


def test_attributes_and_rows_are_those_of_a_local_id() -> None:
    _, customer, _ = figure_four()
    assert customer.attributes(1) == ["Name", "Add.", "Phone"]
    assert customer.attributes(2) == ["Add.", "Phone", "First-Last"]
    assert len(customer.rows(0)) == 2
    customer.delete(("Bob", "CA", "146"))
    assert [len(customer.rows(at)) for at in (2, 3)] == [3, 2]
    customer.drop()
    assert customer.attributes(4) == []
    assert customer.attributes(3) == ["Add.", "Phone", "First-Last"]


def test_example_two_keeps_its_row_in_order_and_loses_it_reordered() -> None:
    assert example_two(reordered=False)[1] == {"Tom", "Ben"}
    steps, shown = example_two(reordered=True)
    assert shown == {"Tom"}
    assert any("the view does not read it" in step for step in steps)


def test_both_are_experiments() -> None:
    assert "INSERT INTO F (Sue)           TxnID [2,2]" in find_experiment("txnwrap", 4).run().lines
    assert find_experiment("txnwrap-example-2").run().lines[-1] == "lost: {Ben}"
