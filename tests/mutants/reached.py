"""Which functions of the source each test reaches: a mark at the beginning of every function, set when it is called.

The source is given its marks when it is imported; nothing on disk changes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_loader
from types import CodeType, ModuleType
from typing import Any

MARK = "__reached__"

Function = tuple[str, str]
"""A file, and the qualified name of a function in it that is in no other function."""

reached: set[Function] = set()


class _Marking(SourceFileLoader):
    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree = ast.parse(data, path)
        for name, function in outermost(tree):
            for inner in [node for node in ast.walk(function) if isinstance(node, ast.FunctionDef)]:
                mark = ast.parse(f"{MARK}.add(({str(path)!r}, {name!r}))").body[0]
                inner.body.insert(_after_text(inner), ast.copy_location(mark, inner.body[0]))
        code: CodeType = compile(ast.fix_missing_locations(tree), path, "exec")
        return code

    def get_code(self, fullname: str) -> CodeType:
        """Always from the source: the stored code has no marks."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__[MARK] = reached
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith(self._packages):
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is None or found.origin is None:
            return None
        is_package = found.submodule_search_locations is not None
        return spec_from_loader(name, _Marking(name, found.origin), is_package=is_package)


def mark_functions(packages: tuple[str, ...]) -> None:
    """Those of these packages, when they are imported from now on."""
    sys.meta_path.insert(0, _Finder(packages))


def outermost(tree: ast.Module) -> list[tuple[str, ast.FunctionDef]]:
    """The functions of a module and the methods of its classes, by their qualified names."""
    found = [(node.name, node) for node in tree.body if isinstance(node, ast.FunctionDef)]
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return found + [(f"{c.name}.{f.name}", f) for c in classes for f in c.body if isinstance(f, ast.FunctionDef)]


def _after_text(function: ast.FunctionDef) -> int:
    return 1 if ast.get_docstring(function) is not None and len(function.body) > 1 else 0
