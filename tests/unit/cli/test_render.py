"""Answers as a person reads them."""

from __future__ import annotations

import pytest

from rollview.cli.render.dispatch import render
from rollview.cli.text import TextOutput
from rollview.results import Answer, Considered, ValidTime


def test_the_first_csn_of_all_is_shown_as_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    considered = (Considered("by_day", True, 0, "extent", 0.01, "equal"), Considered("big", False, why="too few rows"))
    TextOutput(render).show(Answer(0, ValidTime(0, 0, None, None), None, considered, 0.01))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["by_day", "yes", "0", "extent", "0.01", "s", "equal"] in rows
    assert ["big", "no", "too", "few", "rows"] in rows
