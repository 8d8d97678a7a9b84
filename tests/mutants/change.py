"""A mutant's code in the place of the source's, and back.

Law: exactly one function changes, with those that were made in it, and nothing is remembered from before the change.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import _lru_cache_wrapper, cache
from types import CodeType, FunctionType

from tests.mutants.operators import Mutant

_REMEMBERING = ("rollview.", "tests.unit.", "tests.golden.", "tests.property.")
Place = tuple[str, int]
"""The qualified name of a function and the line where it begins."""


def change(mutant: Mutant) -> Callable[[], None]:
    """Returns how to take it back."""
    codes = {_place(code): code for code in _codes(mutant)}
    before = [
        (function, function.__code__) for function in functions().get(str(mutant.path), ()) if _fits(function, codes)
    ]
    for function, _ in before:
        function.__code__ = codes[_place(function.__code__)]
    assert before, f"no function {mutant.function} in {mutant.path}"
    forget()
    return lambda: _take_back(before)


@cache
def functions() -> dict[str, list[FunctionType]]:
    """All that there are now, by their files."""
    found = defaultdict(list)
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType):
            found[thing.__code__.co_filename].append(thing)
    return found


def forget() -> None:
    """What functions of the source remember of their earlier calls, and what tests remember of what those made."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(_REMEMBERING)]
    for thing in (thing for module in modules for thing in vars(module).values()):
        # A database stays: a fork that closed it would break down.
        if isinstance(thing, _lru_cache_wrapper) and thing.__annotations__.get("return") != "Duck":
            thing.cache_clear()


def _take_back(before: list[tuple[FunctionType, CodeType]]) -> None:
    for function, code in before:
        function.__code__ = code
    forget()


def _fits(function: FunctionType, codes: dict[Place, CodeType]) -> bool:
    code = codes.get(_place(function.__code__))
    return code is not None and len(code.co_freevars) == len(function.__code__.co_freevars)


def _place(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


def _codes(mutant: Mutant) -> list[CodeType]:
    """Of the function and of those in it, but for such as cannot be told apart."""
    inside = [code for code in _all(compile(mutant.tree(), str(mutant.path), "exec")) if _is_in(code, mutant.function)]
    times = Counter(map(_place, inside))
    return [code for code in inside if times[_place(code)] == 1]


def _is_in(code: CodeType, function: str) -> bool:
    return code.co_qualname == function or code.co_qualname.startswith(f"{function}.<locals>.")


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _all(inner)
