"""The shape of the code in figures: ``make shape``.

Lines per room, the largest files and functions, cycles of imports (those inside functions and for type checking too),
imports inside functions and which of them give no reason, modules that are loaded when they are first used, functions
of one shape, and class names that exist twice.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "rollview"
LARGEST = 8
INSIDE = 25
"""There are fewer imports inside functions than that."""
LEAST = 45
"""Nodes of a function's tree from which on two of one shape are told."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True, slots=True)
class Module:
    """``name`` with dots, as it is imported; a package has the name of its folder."""

    name: str
    path: Path
    lines: tuple[str, ...]
    tree: ast.Module

    @property
    def room(self) -> str:
        """The folder below the root, or the file if it is in none."""
        return ".".join(self.name.split(".")[:2])

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))


@dataclass(frozen=True, slots=True)
class Place:
    """What it is called, where it begins, and how many lines it has."""

    name: str
    at: str
    size: int


@cache
def modules(source: Path) -> dict[str, Module]:
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = (source.name, *path.relative_to(source).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text()
        found[name] = Module(name, path, tuple(text.splitlines()), ast.parse(text))
    return found


def lines_per_room(known: dict[str, Module]) -> Counter[str]:
    found = Counter[str]()
    for module in known.values():
        found[module.room] += len(module.lines)
    return found


def largest_functions(known: dict[str, Module]) -> list[Place]:
    found = [
        Place(function.name, f"{module.name}:{function.lineno}", (function.end_lineno or 0) - function.lineno + 1)
        for module in known.values()
        for function in module.functions()
    ]
    return sorted(found, key=lambda place: -place.size)


def imported(module: Module, known: dict[str, Module]) -> set[str]:
    """Modules of ours that it names in an import, wherever that is."""
    found = set[str]()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & known.keys()
            if names - known.keys():
                found.add(node.module)
    return (found & known.keys()) - {module.name}


def cycles(known: dict[str, Module]) -> list[list[str]]:
    """Groups of modules that reach each other."""
    reach = {name: imported(module, known) for name, module in known.items()}
    for middle in reach:
        for far in reach.values():
            if middle in far:
                far |= reach[middle]
    together = {frozenset(b for b in near if a in reach[b]) | {a} for a, near in reach.items() if a in near}
    return sorted(sorted(group) for group in together)


def imports_inside(known: dict[str, Module]) -> list[tuple[str, bool]]:
    """Each import inside a function, and whether a comment says why: beside it, or above it and its neighbours."""
    found = dict[str, bool]()
    for module in known.values():
        for function in module.functions():
            for node in ast.walk(function):
                if isinstance(node, Import):
                    at = f"{module.name}:{node.lineno}: {ast.unparse(node)}"
                    found[at] = _has_reason(module.lines, node.lineno - 1)
    return list(found.items())


def loaded_late(known: dict[str, Module]) -> int:
    """Calls of ``lazy_module``."""
    calls = (node for module in known.values() for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    return sum(isinstance(call.func, ast.Name) and call.func.id == "lazy_module" for call in calls)


def _has_reason(lines: tuple[str, ...], at: int) -> bool:
    if "# " in lines[at] and "noqa" not in lines[at]:
        return True
    above = at - 1
    while lines[above].strip().startswith(("import ", "from ")) or not lines[above].strip():
        above -= 1
    return lines[above].strip().startswith("#")


def twins(known: dict[str, Module]) -> list[list[str]]:
    """Functions that differ in names and constants alone."""
    found = defaultdict[str, list[str]](list)
    for module in known.values():
        for function in module.functions():
            if sum(1 for _ in ast.walk(function)) >= LEAST:
                found[_shape(function)].append(f"{module.name}:{function.lineno} {function.name}")
    return sorted(places for places in found.values() if len(places) > 1)


def _shape(function: Function) -> str:
    """The tree without what things are called; equal names stay equal."""
    numbers = dict[str, int]()
    body = [statement for statement in function.body if not _is_text(statement)]
    return " ".join(part for statement in (function.args, *body) for part in _spelled(statement, numbers))


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _spelled(node: ast.AST, numbers: dict[str, int]) -> Iterator[str]:
    yield type(node).__name__
    for name in ("id", "arg", "attr", "name"):
        value = getattr(node, name, None)
        if isinstance(value, str):
            yield str(numbers.setdefault(value, len(numbers)))
    for child in ast.iter_child_nodes(node):
        yield from _spelled(child, numbers)
    yield "."


def classes_twice(known: dict[str, Module]) -> dict[str, list[str]]:
    found = defaultdict[str, list[str]](list)
    for module in known.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{module.name}:{node.lineno}")
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def report(known: dict[str, Module]) -> Iterable[str]:
    rooms = lines_per_room(known)
    yield f"lines: {rooms.total()} in {len(known)} files"
    yield from (f"  {lines:6} {room}" for room, lines in rooms.most_common())
    yield "largest files:"
    files = sorted(known.values(), key=lambda module: -len(module.lines))
    yield from (f"  {len(module.lines):6} {module.name}" for module in files[:LARGEST])
    yield "largest functions:"
    yield from (f"  {place.size:6} {place.name} ({place.at})" for place in largest_functions(known)[:LARGEST])
    found = cycles(known)
    yield f"cycles of imports: {len(found)}"
    yield from (f"  {' '.join(group)}" for group in found)
    inside = imports_inside(known)
    bare = [at for at, reason in inside if not reason]
    yield f"imports inside functions: {len(inside)}, without a reason: {len(bare)}"
    yield from (f"  {at}" for at in bare)
    yield f"modules loaded when first used: {loaded_late(known)}"
    same = twins(known)
    yield f"functions of one shape: {len(same)}"
    yield from (f"  {', '.join(places)}" for places in same)
    twice = classes_twice(known)
    yield f"class names that exist twice: {len(twice)}"
    yield from (f"  {name}: {', '.join(places)}" for name, places in twice.items())


def main(arguments: list[str]) -> int:
    """Of another package, if its folder is given."""
    print("\n".join(report(modules(Path(arguments[0]) if arguments else SOURCE))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
