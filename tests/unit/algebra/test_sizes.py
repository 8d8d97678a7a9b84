"""Where sizes decide, the bound itself still counts as little."""

from __future__ import annotations

from tests.property.duck import Duck

from rollview.algebra.resolve import Known
from rollview.algebra.script import FEW_ROWS, ONE_TASK_ROWS, Script
from rollview.algebra.summary import FEW_GROUPS, GROUPS, few_groups
from rollview.core.schema import Column, Schema


def test_few_groups() -> None:
    assert few_groups(Script(sizes={GROUPS: FEW_GROUPS}))
    assert not few_groups(Script(sizes={GROUPS: FEW_GROUPS + 1}))
    assert not few_groups(Script())


def test_a_block_is_read_whole_where_all_of_its_tables_are_short() -> None:
    block = Duck((table("r"), table("s"))).compile("v", "SELECT r.a FROM r JOIN s ON r.a = s.a").outline.rel
    assert block is not None
    assert Script(sizes={"r": FEW_ROWS, "s": FEW_ROWS}).reads_few(block)
    assert not Script(sizes={"r": FEW_ROWS, "s": FEW_ROWS + 1}).reads_few(block)
    assert not Script(sizes={"r": FEW_ROWS}).reads_few(block)
    assert not Script(sizes={"r": 1, "s": 1}, small=False).reads_few(block)


def table(name: str) -> Known:
    return Known(name, Schema((Column("a", "int"),)))


def test_what_one_task_may_read() -> None:
    def reads_little(*, small: bool = True, **sizes: int) -> bool:
        return Script(small=small, sizes=sizes, inputs={("r", "old"), ("s", "old"), ("t", "delta")}).reads_little

    assert reads_little(r=ONE_TASK_ROWS, s=ONE_TASK_ROWS)
    assert not reads_little(r=ONE_TASK_ROWS, s=ONE_TASK_ROWS + 1)
    assert not reads_little(r=ONE_TASK_ROWS)
    assert not reads_little(r=1, s=1, small=False)
