"""Does a wrong sign, bound, comparison or a missing term go unnoticed? ``make mutants``.

Every mutant is the source with one small wrong change in one function. The unit, golden and property tests must fail on
it, the quick ones or those that compare rows; what lives is tried with the same laws on Spark. One process runs the
tests on the source as it is, noting which functions each reaches, and then changes the code of one function after the
other in place and runs the tests that reach it, the most promising first, until one fails. Prints the mutants that
live. Stopped and started again it goes on.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.kept import Answer, Kept, digest
from tests.mutants.operators import Mutant, mutants
from tests.mutants.reached import mark_functions
from tests.mutants.trial import Trials

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PACKAGES = ("algebra", "compensate", "consistency", "propagate", "apply", "evolve", "matching")
QUICK = (
    "tests/golden/test_golden.py::test_the_files_say_what_rollview_makes_of_each_view",
    "tests/unit/algebra",
    "tests/unit/compensate",
    "tests/unit/consistency",
    "tests/unit/propagate",
    "tests/unit/apply",
    "tests/unit/evolve",
    "tests/unit/routing",
    "tests/unit/schedule",
    # so many names are no help against wrong terms
    "--ignore=tests/unit/algebra/test_hostile_names.py",
    *(f"--ignore=tests/unit/algebra/test_{name}.py" for name in ("accumulators", "lookup", "stages")),
)
WITH_ROWS = (
    "tests/golden/test_golden.py::test_the_propagation_gives_the_rows_of_the_definition",
    *(
        f"tests/property/test_{name}.py"
        for name in ("timed_delta", "hot_keys", "derived", "rolling", "synchronization", "matching", "near_misses")
    ),
    *(f"tests/unit/algebra/test_{name}.py" for name in ("accumulators", "lookup", "stages")),
)
ON_SPARK = (
    "tests/spark/apply",
    "tests/spark/oracle/test_histories.py",
    "tests/spark/oracle/test_operators.py",
    "tests/spark/oracle/test_ties.py",
    "tests/spark/oracle/test_redefinitions.py",
    "tests/spark/schedule/test_rolling.py",
    "tests/spark/evolve",
    "tests/spark/routing/test_meant.py",
    *(
        f"tests/spark/sources/test_{name}.py"
        for name in (
            "algorithms",
            "altered",
            "asked",
            "gone_tables",
            "needed",
            "synchronized",
            "waiting",
            "wider_types",
        )
    ),
    "tests/spark/ipda/test_one_delta.py",
    "tests/audit/test_wrong_rows.py::test_what_is_read_otherwise_is_computed_from_its_authors_text_and_says_so",
)
HISTORIES, SPARK_HISTORIES = "120", "6"
GOAL = 0.95


def main() -> int:
    options = arguments()
    found = [mutant for package in PACKAGES for path in files(package) for mutant in mutants(path)]
    chosen = [mutant for mutant in found if options.only in spelled(mutant)]
    chosen = sorted(chosen, key=lambda mutant: shuffled(mutant, options.seed))[: options.sample]
    os.environ |= {"ROLLVIEW_HISTORIES": HISTORIES, "ROLLVIEW_SPARK_HISTORIES": SPARK_HISTORIES}
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCE))
    mark_functions(tuple(f"rollview.{package}." for package in PACKAGES))
    answers: dict[Mutant, Answer] = {}
    for tests, jobs in ((QUICK, options.jobs), (WITH_ROWS, options.jobs), (ON_SPARK, 0))[: options.phases]:
        living = [mutant for mutant in chosen if mutant not in answers or not answers[mutant].caught_by]
        answers |= tried(living, tests, jobs)
    return summary(answers.values(), len(found))


def tried(chosen: list[Mutant], tests: tuple[str, ...], jobs: int) -> dict[Mutant, Answer]:
    kept = Kept(ROOT / "build" / "mutants.jsonl", digest((SOURCE, ROOT / "tests"), tests))
    answers = {mutant: answer for mutant in chosen if (answer := kept.find(mutant)) is not None}
    if answers:
        print(f"{len(answers)} of {len(chosen)} known from before", flush=True)

    def tell(answer: Answer) -> None:
        kept.keep(answer)
        answers[answer.mutant] = answer
        said = f"caught by {answer.caught_by}" if answer.caught_by else f"LIVES in {answer.tests} tests"
        print(f"{len(answers)} of {len(chosen)}: {spelled(answer.mutant)}: {said}", flush=True)

    unknown = [mutant for mutant in chosen if mutant not in answers]
    trials = Trials(unknown, jobs, kept.catcher, tell)
    if unknown and pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests], plugins=[trials]):
        raise SystemExit(1)
    return answers


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="only so many, chosen at random")
    parser.add_argument("--only", default="", help="only those whose line has this text: a file, a line, a change")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="so many side by side")
    parser.add_argument("--phases", type=int, default=3, help="1 for the quickest tests only, 2 without Spark")
    return parser.parse_args()


def shuffled(mutant: Mutant, seed: int) -> bytes:
    """A place by chance that stays while other code changes: a sample can be tried again when its tests are better."""
    return sha256(repr((seed, mutant.named, mutant.choice)).encode()).digest()


def files(package: str) -> list[Path]:
    return sorted((SOURCE / "rollview" / package).rglob("*.py"))


def spelled(mutant: Mutant) -> str:
    return f"{mutant.path.relative_to(SOURCE)}:{mutant.line}: {mutant.what}"


def summary(answers: Iterable[Answer], possible: int) -> int:
    """The goal is for all of them: what is known to be equivalent is told apart, and still lives."""
    asked = list(answers)
    living = [answer.mutant for answer in asked if not answer.caught_by]
    others = [mutant for mutant in living if mutant.named not in EQUIVALENT]
    share, known = 1 - len(living) / max(1, len(asked)), len(living) - len(others)
    print(f"\n{len(asked) - len(living)} of {len(asked)} caught ({share:.1%}; goal {GOAL:.0%}), of {possible} possible")
    print(f"without the {known} that are known to be equivalent: {1 - len(others) / max(1, len(asked) - known):.1%}")
    for mutant in sorted(living, key=spelled):
        print(f"  lives: {spelled(mutant)}{f' ({EQUIVALENT[mutant.named]})' if mutant.named in EQUIVALENT else ''}")
    wrong = sorted(EQUIVALENT.keys() & {answer.mutant.named for answer in asked if answer.caught_by})
    print(*(f"  not equivalent after all: {named}" for named in wrong), sep="\n", end="")
    return 0 if share >= GOAL and not wrong else 1


if __name__ == "__main__":
    raise SystemExit(main())
