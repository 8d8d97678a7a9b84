"""What a user types at the lab, and sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rollview.cli.main import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No project is near: the lab needs none."""
    monkeypatch.chdir(tmp_path)


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["lab", *words])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = typed(capsys, "list")
    assert code == 0
    assert "strobe-3" in out
    assert "How To Roll a Join" in out


def test_a_run_is_told_message_by_message_and_judged(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = typed(capsys, "run", "held-parts")
    assert code == 0
    assert "answer  y   A1 = {[1,3,5]}" in out
    assert "'held-parts' is convergent." in out
    assert "Not weak: version 1 is the view of no state of the sources" in out


def test_a_history_is_written_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(capsys, "run", "strobe-5", "--history", "told.json")[0] == 0
    code, out, _ = typed(capsys, "check", "told.json", "--output", "json")
    verdict = json.loads(out)
    assert (code, verdict["level"], verdict["breaks"]) == (0, "weak", "strong")
    assert [one["reflects"] for one in verdict["versions"]] == ["x 0, y 0", "x 1, y 1", "x 2, y 1"]


def test_a_view_that_is_wrong_at_rest_fails(capsys: pytest.CaptureFixture[str]) -> None:
    typed(capsys, "run", "insert-anomaly", "--history", "told.json")
    code, out, _ = typed(capsys, "check", "told.json")
    assert code == 1
    assert "too many: {[4]}" in out


def test_mistakes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        (("run", "nope"), "There is no experiment 'nope'."),
        (("check", "nope.json"), "Cannot read 'nope.json'"),
        (("run", "rolling", "--history", "told.json"), "publishes no view"),
        (("draw", "rolling", "--into", "nope/rolling.svg"), "Cannot write 'nope/rolling.svg'"),
        (("draw", "--view", "v"), "There is no project"),
    ):
        code, _, err = typed(capsys, *words)
        assert code == 2
        assert says in err


def test_a_picture_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(capsys, "draw", "rolling")[0] == 0
    assert Path("rolling.svg").read_text(encoding="utf-8").startswith("<svg")
    assert typed(capsys, "draw", "strobe-1", "--into", "one.svg")[0] == 0
    assert Path("one.svg").exists()
    assert typed(capsys, "draw", "strobe/global/17")[0] == 0
    assert Path("strobe-global-17.svg").exists()
