"""One function per kind of answer: how it reads as text.

Law: a subject's module is loaded when an answer may be its own; an answer of no subject is told field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import singledispatch
from importlib import import_module
from typing import Any

from rollview.cli.text import TextOutput
from rollview.results import Result

SUBJECTS = ("relations", "statements", "status", "views", "sources", "subscribers", "schemas", "space", "experiments")


@singledispatch
def render(answer: Result, to: TextOutput) -> None:
    for subject in _subjects(type(answer)):
        import_module(f"rollview.cli.render.{subject}")
        found = render.dispatch(type(answer))
        if found is not render.registry[object]:
            found(answer, to)
            return
    for name, value in answer.to_json().items():
        to.say(f"{name}: {value}")


def _subjects(kind: type[Any]) -> Iterator[str]:
    """Answers that a module of that name declares are most often its own."""
    own = kind.__module__.rpartition(".")[2]
    return iter(sorted(SUBJECTS, key=lambda subject: subject != own))


def renders(kind: type[Any]) -> Callable[[Callable[[Any, TextOutput], None]], Callable[[Any, TextOutput], None]]:
    return render.register(kind)
