"""Does a wrong sign, bound, comparison or a missing term go unnoticed? ``make mutants``.

Every mutant is a copy of the source with one small wrong change. The unit, golden and property tests, which start no
Spark, must fail on it. Prints the ones that live.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.mutants.operators import Mutant, mutants

ROOT = Path(__file__).parents[2]
PACKAGES = ("algebra", "propagate", "apply")
TESTS = ("tests/golden", "tests/unit/algebra", "tests/unit/propagate", "tests/unit/apply", "tests/property")
GOAL = 0.95


def main() -> int:
    options = arguments()
    found = [m for name in PACKAGES for path in sorted(source(name).rglob("*.py")) for m in mutants(path)]
    chosen = found if options.sample is None else Random(options.seed).sample(found, min(options.sample, len(found)))
    living = []
    for number, mutant in enumerate(chosen, 1):
        lives = not is_caught(mutant)
        print(f"{number} of {len(chosen)} {'LIVES ' if lives else 'caught'} {spelled(mutant)}", flush=True)
        if lives:
            living.append(mutant)
    share = 1 - len(living) / len(chosen)
    caught = f"{len(chosen) - len(living)} of {len(chosen)} caught"
    print(f"\n{caught} ({share:.1%}; goal {GOAL:.0%}), of {len(found)} possible")
    for mutant in living:
        print(f"  lives: {spelled(mutant)}")
    return 0 if share >= GOAL else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="only so many, chosen at random")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def source(package: str) -> Path:
    return ROOT / "src" / "rollview" / package


def spelled(mutant: Mutant) -> str:
    return f"{mutant.path.relative_to(ROOT / 'src')}:{mutant.line}: {mutant.what}"


def is_caught(mutant: Mutant) -> bool:
    with tempfile.TemporaryDirectory(prefix="rollview-mutant-") as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src")
        (Path(folder) / "src" / mutant.path.relative_to(ROOT / "src")).write_text(mutant.source, encoding="utf-8")
        tests = [test for test in TESTS if (ROOT / test).exists()]
        environment = {**os.environ, "PYTHONPATH": str(Path(folder) / "src"), "ROLLVIEW_HISTORIES": "200"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "2", *tests]
        try:
            ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=600)
        except subprocess.TimeoutExpired:
            return True
        return ran.returncode != 0


if __name__ == "__main__":
    raise SystemExit(main())
