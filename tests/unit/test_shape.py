"""The figures of `make shape`, on a package that has one of everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests import shape
from tests.shape import Module

FILES = {
    "__init__.py": "",
    "upper/__init__.py": "from house.upper.first import Thing\n",
    "upper/first.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from house.lower import second

def ask(them):
    found = []
    for one in them:
        if one.is_there and one.size > 3:
            found.append(one.name + "!")
    return sorted(found, key=lambda word: len(word))

class Thing:
    pass
""",
    "lower/__init__.py": "",
    "lower/second.py": """
class Thing:
    pass

def late():
    from house.upper import first
    return first

def told():
    # numbers are rarely asked for
    import decimal

    import fractions
    return decimal, fractions

def beside():
    import json  # rarely asked for
    return json
""",
    "lower/third.py": """
import house.upper.first

numbers = lazy_module("decimal")

def tell(rows):
    \"\"\"The same with other words.\"\"\"
    seen = []
    for row in rows:
        if row.came and row.age > 7:
            seen.append(row.title + "?")
    return sorted(seen, key=lambda text: len(text))
""",
}


@pytest.fixture
def house(tmp_path: Path) -> dict[str, Module]:
    for name, text in FILES.items():
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return shape.modules(tmp_path / "house")


def test_lines_are_counted_by_room_and_function(house: dict[str, Module]) -> None:
    lines = {name: text.count("\n") for name, text in FILES.items()}
    assert shape.lines_per_room(house) == {
        "house": 0,
        "house.upper": lines["upper/__init__.py"] + lines["upper/first.py"],
        "house.lower": lines["lower/second.py"] + lines["lower/third.py"],
    }
    first, *_ = shape.largest_functions(house)
    assert (first.name, first.at, first.size) == ("tell", "house.lower.third:6", 7)


def test_a_cycle_is_found_through_functions_and_types(house: dict[str, Module]) -> None:
    assert shape.cycles(house) == [["house.lower.second", "house.upper.first"]]
    without = {name: module for name, module in house.items() if name != "house.lower.second"}
    assert shape.cycles(without) == []


def test_a_reason_stands_beside_an_import_or_above_it_and_its_neighbours(house: dict[str, Module]) -> None:
    assert shape.imports_inside(house) == [
        ("house.lower.second:6: from house.upper import first", False),
        ("house.lower.second:11: import decimal", True),
        ("house.lower.second:13: import fractions", True),
        ("house.lower.second:17: import json", True),
    ]


def test_functions_of_one_shape_differ_in_words_alone(house: dict[str, Module]) -> None:
    assert shape.twins(house) == [["house.lower.third:6 tell", "house.upper.first:6 ask"]]


def test_class_names_that_exist_twice(house: dict[str, Module]) -> None:
    assert shape.classes_twice(house) == {"Thing": ["house.lower.second:2", "house.upper.first:13"]}


def test_the_report_has_every_figure(house: dict[str, Module]) -> None:
    told = [line for line in shape.report(house) if not line.startswith(" ")]
    assert told == [
        "lines: 45 in 6 files",
        "largest files:",
        "largest functions:",
        "cycles of imports: 1",
        "imports inside functions: 4, without a reason: 1",
        "modules loaded when first used: 1",
        "functions of one shape: 1",
        "class names that exist twice: 1",
    ]


def test_no_cycle_of_imports_and_no_two_classes_of_one_name() -> None:
    known = shape.modules(shape.SOURCE)
    assert len(known) > 100
    assert shape.cycles(known) == []
    assert shape.classes_twice(known) == {}


def test_imports_inside_functions_are_few_and_have_reasons() -> None:
    inside = shape.imports_inside(shape.modules(shape.SOURCE))
    assert [at for at, has_reason in inside if not has_reason] == []
    assert len(inside) < shape.INSIDE


def test_importing_rollview_and_its_command_line_loads_no_library_of_the_rooms() -> None:
    heavy = ("pyspark", "pyarrow", "numpy", "sqlalchemy", "sqlglot", "yaml", "pydantic", "rich", "rollview.catalog")
    program = f"import sys, rollview, rollview.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
