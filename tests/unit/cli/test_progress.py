"""Signs of life: none for quick work, lines for slow work without a terminal."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from rollview.cli import progress
from rollview.cli.output import Form, make_output


def working(form: Form) -> progress.Working:
    return progress.Working(make_output(form), form, "Refreshing")


def test_quick_work_says_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 600)
    with working(Form.TEXT) as work:
        work.now("1/2 sales")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("form", list(Form))
def test_slow_work_speaks_and_then_tells_changes(
    form: Form, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    with working(form) as work:
        while not work._speaking:
            time.sleep(0.01)
        work.now("1/2 sales")
        work.now("1/2 sales")
    out, err = capsys.readouterr()
    lines: list[Any] = err.splitlines()
    if form is Form.JSON:
        lines = [json.loads(line)["progress"] for line in lines]
    assert (out, lines) == ("", ["Refreshing …", "1/2 sales …"])
