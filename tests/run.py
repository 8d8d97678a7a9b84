"""All tests, part by part, whatever failed before: ``make test``.

Ends with how each part went, what failed, what was skipped and why, and the sum of all. A part is a run of pytest of
its own: what needs no Spark runs test by test side by side; what does, in a few processes that each keep one session
and one server of a kind. There is one process more than cores, for tests wait for disks, leases and other processes;
and where memory can hold the tests' folders, nothing waits for a disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
NOTHING_COLLECTED = 5
"""What pytest ends with when it found no test."""
NEVER_ENDS = 1_200
"""Seconds after which a test fails, whatever it waits for."""


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    folders: tuple[str, ...]
    processes: tuple[str, ...] = ()

    def there(self) -> list[str]:
        return [folder for folder in self.folders if (ROOT / folder).exists()]


GB = 1 << 30
MEMORY = Path("/dev/shm")
ROOM = 4 * GB
"""What the folders of all tests may take."""


def processes(each: int, memory: int, cores: int) -> int:
    """As many as ``memory`` has room for if each takes so much, and never more than four."""
    return max(2, min(4, cores + 1, memory // each))


def folder_for_tests(memory: Path = MEMORY) -> str | None:
    """In memory, if there is room and programs may be run there; None for the system's own choice."""
    if not os.access(memory, os.W_OK):
        return None
    told = os.statvfs(memory)
    return str(memory) if told.f_bavail * told.f_frsize >= ROOM and not told.f_flag & os.ST_NOEXEC else None


_MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), os.cpu_count() or 1

TEST_BY_TEST = ("-n", str(processes(GB, *_MACHINE)))
FILE_BY_FILE = ("-n", str(processes(4 * GB, *_MACHINE)), "--dist", "loadfile", "--no-loadscope-reorder")
"""In the order of the folders, those with long files first, so that no process is left with one at the end."""

PARTS = (
    Part("light", ("tests/unit", "tests/golden", "tests/property"), TEST_BY_TEST),
    Part(
        "spark, sources and faults",
        (
            *("tests/faults", "tests/interleaving", "tests/docs", "tests/cli", "tests/anywhere", "tests/spark"),
            *("tests/audit", "tests/sources"),
        ),
        FILE_BY_FILE,
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    part: str
    passed: int = 0
    failed: tuple[str, ...] = ()
    skipped: Counter[str] = field(default_factory=Counter)
    """How many tests were skipped for each reason."""
    seconds: float = 0.0

    @property
    def counts(self) -> str:
        return f"{self.passed} passed, {len(self.failed)} failed, {self.skipped.total()} skipped"


def main(arguments: Sequence[str]) -> int:
    """Arguments go to pytest in every part."""
    outcomes = [run(part, arguments) for part in PARTS if part.there()]
    print("\n" + "\n".join(summary(outcomes)), flush=True)
    return int(any(outcome.failed for outcome in outcomes))


def run(part: Part, arguments: Sequence[str]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="rollview-tests-", dir=folder_for_tests()) as folder:
        report = Path(folder) / "report.xml"
        files = [f"--junitxml={report}", f"--basetemp={folder}/tests"]
        options = [*part.processes, "--continue-on-collection-errors", f"--timeout={NEVER_ENDS}", *files, *arguments]
        command = [sys.executable, "-m", "pytest", *options, *part.there()]
        print(f"\n{part.name}: {' '.join(part.there())}", flush=True)
        began = time.monotonic()
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        return outcome_of(part.name, report, code, time.monotonic() - began)


def outcome_of(part: str, report: Path, code: int, seconds: float) -> Outcome:
    """From pytest's report. A run that ends badly without a test that failed has failed itself."""
    cases = list(ElementTree.parse(report).getroot().iter("testcase")) if report.exists() else []
    failed = tuple(dict.fromkeys(name_of(case) for case in cases if _is_bad(case)))
    if not failed and code not in (0, NOTHING_COLLECTED):
        failed = (f"pytest itself, with {code}",)
    reasons = [skip.get("message") or "no reason given" for case in cases for skip in case.findall("skipped")]
    passed = sum(1 for case in cases if not _is_bad(case) and case.find("skipped") is None)
    return Outcome(part, passed, failed, Counter(reasons), seconds)


def name_of(case: ElementTree.Element) -> str:
    """As it is given to pytest; a file that could not be read has no class."""
    place, name = case.get("classname") or "", case.get("name") or ""
    return f"{place.replace('.', '/')}.py::{name}" if place else f"{name.replace('.', '/')}.py"


def _is_bad(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def summary(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """One line for each part, then what failed and what was skipped, and the sum of all as the last line."""
    for outcome in outcomes:
        yield f"{outcome.part}: {outcome.counts} in {spelled(outcome.seconds)}"
    for outcome in outcomes:
        yield from (f"FAILED {name}" for name in outcome.failed)
    every: Counter[str] = sum((outcome.skipped for outcome in outcomes), Counter[str]())
    yield from (f"SKIPPED {count}: {reason}" for reason, count in sorted(every.items()))
    total = Outcome(
        "total", sum(one.passed for one in outcomes), tuple(name for one in outcomes for name in one.failed), every
    )
    yield f"total: {total.counts}"


def spelled(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
