"""Packages whose names are imported when they are first asked for.

Law: importing a package costs only what is used of it; its ``__init__`` shows all of its names, and where each lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: ``homes`` tells the module of each name. A module may be such a name itself."""

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(home)
        return module if home.rpartition(".")[2] == name else getattr(module, name)

    return find
