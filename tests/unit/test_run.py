"""All parts of the tests run whatever failed before, and the summary tells what failed, what was skipped and why."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import run
from tests.run import Part

PASSES = "def test_it():\n    pass\n"
FAILS = "def test_it():\n    assert 1 == 2\n"
BREAKS_AT_ITS_END = (
    "import pytest\n@pytest.fixture\ndef broken():\n    yield\n    assert 1 == 2\ndef test_it(broken):\n    pass\n"
)
SKIPS = "import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_it(n):\n    pytest.skip('no server')\n"
CANNOT_BE_READ = "import nothing_of_that_name\n"


Files = dict[str, dict[str, str]]


@pytest.fixture
def told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[Files], tuple[int, list[str]]]:
    """The exit code and the summary of a run on these parts."""

    def tell(parts: Files) -> tuple[int, list[str]]:
        for part, files in parts.items():
            (tmp_path / part).mkdir()
            for name, text in files.items():
                (tmp_path / part / f"test_{name}.py").write_text(text)
        monkeypatch.setattr(run, "ROOT", tmp_path)
        monkeypatch.setattr(run, "PARTS", tuple(Part(part, (part, "not_there")) for part in parts))
        monkeypatch.setattr(run, "spelled", lambda seconds: "a while")
        code = run.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest"])
        return code, capfd.readouterr().out.rpartition("\n\n")[2].splitlines()

    return tell


def test_a_failure_keeps_nothing_from_being_run(told: Callable[[Files], tuple[int, list[str]]]) -> None:
    first = {"breaks": BREAKS_AT_ITS_END, "fails": FAILS, "passes": PASSES, "unreadable": CANNOT_BE_READ}
    code, lines = told({"first": first, "second": {"passes": PASSES, "skips": SKIPS}})
    assert code == 1
    assert lines == [
        "first: 1 passed, 3 failed, 0 skipped in a while",
        "second: 1 passed, 0 failed, 3 skipped in a while",
        "FAILED first/test_unreadable.py",
        "FAILED first/test_breaks.py::test_it",
        "FAILED first/test_fails.py::test_it",
        "SKIPPED 3: no server",
        "total: 2 passed, 3 failed, 3 skipped",
    ]


def test_as_many_processes_as_there_is_memory_for_and_one_more_than_cores() -> None:
    asked = [(23, 2), (7, 2), (12, 2), (64, 16), (2, 1)]
    assert [run.processes(4 * run.GB, memory * run.GB, cores) for memory, cores in asked] == [3, 2, 3, 4, 2]


def test_folders_are_in_memory_only_where_they_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run.folder_for_tests(tmp_path / "not there") is None
    monkeypatch.setattr(run, "ROOM", 0)
    assert run.folder_for_tests(tmp_path) == str(tmp_path)
    monkeypatch.setattr(run, "ROOM", 1 << 60)
    assert run.folder_for_tests(tmp_path) is None


def test_no_failure_is_success_and_reasons_are_told_once(told: Callable[[Files], tuple[int, list[str]]]) -> None:
    code, lines = told({"only": {"one": SKIPS, "other": SKIPS, "passes": PASSES}})
    assert code == 0
    assert lines[-2:] == ["SKIPPED 6: no server", "total: 1 passed, 0 failed, 6 skipped"]


def test_a_part_that_was_stopped_has_failed(tmp_path: Path) -> None:
    outcome = run.outcome_of("part", tmp_path / "no report", -9, 1.0)
    assert outcome.failed == ("pytest itself, with -9",)
    assert run.outcome_of("part", tmp_path / "no report", run.NOTHING_COLLECTED, 1.0).failed == ()


def test_every_folder_with_tests_is_in_a_part() -> None:
    tests = Path(run.__file__).parent
    folders = {f"tests/{path.relative_to(tests).parts[0]}" for path in tests.rglob("test_*.py")}
    assert folders <= {folder for part in run.PARTS for folder in part.folders}


def test_it_is_what_make_test_runs() -> None:
    dry_run = ["make", "--dry-run", "--no-print-directory", "test"]
    said = subprocess.run(dry_run, cwd=run.ROOT, capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1].split()[-2:] == ["-m", "tests.run"]
