"""One function per kind of answer: how it reads as text."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from rollview.cli.text import TextOutput
from rollview.results import Result


@singledispatch
def render(answer: Result, to: TextOutput) -> None:
    for name, value in answer.to_json().items():
        to.say(f"{name}: {value}")


def renders(kind: type[Any]) -> Callable[[Callable[[Any, TextOutput], None]], Callable[[Any, TextOutput], None]]:
    return render.register(kind)
