"""Every program in examples/ runs, and shows what its story tells."""

from __future__ import annotations

import runpy

import pytest

from tests.docs.pages import ROOT

SHOWN = {
    "bank.py": ["csn 1: Ada 100.00, Bob 50.00", "csn 2: Ada 70.00, Bob 80.00", "csn 3: Ada 80.00, Bob 70.00"],
    "two_databases.py": ["unpaid at first: order 1, order 2", "unpaid after a payment: order 1"],
}


def test_no_example_is_left_out() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(SHOWN)


@pytest.mark.spark
@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == SHOWN[name]
