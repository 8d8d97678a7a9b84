"""Packages and modules that are imported when they are first asked for something.

Law: importing a package costs only what is used of it; its ``__init__`` shows all of its names, and where each lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
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


class _LazyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def lazy_module(name: str) -> ModuleType:
    """A module that is imported when it is first asked for something; for what is heavy and often not needed.

    A type checker does not follow it, so the plain import stands beside it under ``TYPE_CHECKING``.
    """
    return _LazyModule(name)
