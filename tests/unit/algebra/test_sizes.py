"""Where sizes decide, the bound itself still counts as little."""

from __future__ import annotations

from rollview.algebra.script import ONE_TASK_ROWS, Script
from rollview.algebra.summary import FEW_GROUPS, GROUPS, few_groups


def test_few_groups() -> None:
    assert few_groups(Script(sizes={GROUPS: FEW_GROUPS}))
    assert not few_groups(Script(sizes={GROUPS: FEW_GROUPS + 1}))
    assert not few_groups(Script())


def test_what_one_task_may_read() -> None:
    def reads_little(*, small: bool = True, **sizes: int) -> bool:
        return Script(small=small, sizes=sizes, inputs={("r", "old"), ("s", "old"), ("t", "delta")}).reads_little

    assert reads_little(r=ONE_TASK_ROWS, s=ONE_TASK_ROWS)
    assert not reads_little(r=ONE_TASK_ROWS, s=ONE_TASK_ROWS + 1)
    assert not reads_little(r=ONE_TASK_ROWS)
    assert not reads_little(r=1, s=1, small=False)
