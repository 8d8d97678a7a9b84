"""Does a wrong sign, bound, comparison or a missing term go unnoticed? ``make mutants``.

Every mutant is the source with one small wrong change in one function. The unit, golden and property tests must fail on
it; where only a Spark session reaches the function, the same laws on Spark. One process runs them on the source as it
is, noting which functions each test reaches, and then forks for each mutant: the fork changes the function's code in
place and runs the tests that reach it, the most promising first, until one fails. Prints the ones that live.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tests.mutants.operators import Mutant, mutants
from tests.mutants.reached import mark_functions
from tests.mutants.trial import Answer, Trials

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PACKAGES = ("algebra", "propagate", "apply")
TESTS = (
    "tests/golden",
    "tests/property/test_timed_delta.py",
    "tests/unit/algebra",
    "tests/unit/propagate",
    "tests/unit/apply",
    # so many names are no help against wrong terms
    "--ignore=tests/unit/algebra/test_hostile_names.py",
)
ON_SPARK = (
    "tests/spark/apply",
    "tests/spark/oracle/test_histories.py",
    "tests/spark/oracle/test_operators.py",
)
"""For functions that none of the others reach."""
HISTORIES, SPARK_HISTORIES = "120", "6"
GOAL = 0.95


def main() -> int:
    options = arguments()
    found = [mutant for package in PACKAGES for path in files(package) for mutant in mutants(path)]
    chosen = [mutant for mutant in found if options.only in spelled(mutant)]
    Random(options.seed).shuffle(chosen)
    os.environ |= {"ROLLVIEW_HISTORIES": HISTORIES, "ROLLVIEW_SPARK_HISTORIES": SPARK_HISTORIES}
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCE))
    mark_functions(tuple(f"rollview.{package}." for package in PACKAGES))
    answers = tried(chosen[: options.sample], options.jobs, TESTS)
    unreached = [answer.mutant for answer in answers if not answer.tests]
    answers = [answer for answer in answers if answer.tests] + tried(unreached, options.jobs, ON_SPARK)
    return summary(answers, len(found))


def tried(chosen: list[Mutant], jobs: int, tests: Sequence[str]) -> list[Answer]:
    if not chosen:
        return []
    trials = Trials(chosen, jobs, tell)
    ran = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests], plugins=[trials])
    if ran != pytest.ExitCode.OK:
        raise SystemExit(1)
    return trials.answers


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="only so many, chosen at random")
    parser.add_argument("--only", default="", help="only those whose line has this text: a file, a line, a change")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="so many side by side")
    return parser.parse_args()


def files(package: str) -> list[Path]:
    return sorted((SOURCE / "rollview" / package).rglob("*.py"))


def spelled(mutant: Mutant) -> str:
    return f"{mutant.path.relative_to(SOURCE)}:{mutant.line}: {mutant.what}"


def tell(answer: Answer, number: int, of: int) -> None:
    by = f" by {answer.caught_by} of {answer.tests}" if answer.caught_by else f" in {answer.tests} tests"
    print(f"{number} of {of} {'caught' if answer.caught_by else 'LIVES'}: {spelled(answer.mutant)}{by}", flush=True)


def summary(answers: Sequence[Answer], possible: int) -> int:
    chosen, living = len(answers), [answer for answer in answers if not answer.caught_by]
    share = 1 - len(living) / max(1, chosen)
    print(f"\n{chosen - len(living)} of {chosen} caught ({share:.1%}; goal {GOAL:.0%}), of {possible} possible")
    for answer in sorted(living, key=lambda answer: spelled(answer.mutant)):
        print(f"  lives: {spelled(answer.mutant)}, in {answer.tests} tests")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
