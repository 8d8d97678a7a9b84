"""What `make test` does in part, `make faults` does in full."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_with_a_full_size_is_run_in_full() -> None:
    said = subprocess.run(["make", "-n", "faults"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    given = [ROOT / word for line in said.splitlines() for word in line.split() if word.startswith("tests/")]
    sized = [path for path in (ROOT / "tests").rglob("test_*.py") if "\nfrom tests.sizes import" in path.read_text()]
    assert len(sized) > 10
    assert [path for path in sized if not any(path.is_relative_to(place) for place in given)] == []
