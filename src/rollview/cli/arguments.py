"""Arguments of a command that need no conversion.

Law: defaults are taken as the program gave them, and texts, the form and the project as they are written; whatever else
is given, typer converts and judges. It does so with pydantic, which takes longer to load than a command that only reads
the catalog takes to answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

from typer import Context
from typer.core import TyperCommand, TyperGroup

from rollview.cli.output import Form

Maker = Callable[[Any], Any]


class Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _taking(super().get_params(ctx), self.callback)


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _taking(super().get_params(ctx), self.callback)


def _taking(parameters: list[Any], callback: Callable[..., Any] | None) -> list[Any]:
    """The parameters, each of which takes what it can before typer converts it."""
    fresh = [parameter for parameter in parameters if "process_value" not in vars(parameter)]
    makers = {"output": Form, "project_dir": Path} | dict.fromkeys(_texts(callback) if fresh else (), str)
    for parameter in fresh:
        take = partial(_take, parameter, makers.get(parameter.name))
        parameter.process_value = partial(_processed, parameter, take, parameter.process_value)
    return parameters


def _texts(callback: Callable[..., Any] | None) -> set[str]:
    """Parameters whose values are plain text."""
    if callback is None:
        return set()
    kinds = {one.name: one.annotation for one in inspect.signature(callback).parameters.values()}
    return {name for name, kind in kinds.items() if (get_args(kind) or (kind,))[0] in (str, str | None)}


def _processed(parameter: Any, take: Maker, convert: Callable[..., Any], context: Context, value: Any) -> Any:
    try:
        taken = take(value)
    except ValueError:
        return convert(context, value)
    return taken if parameter.callback is None else parameter.callback(context, parameter, taken)


def _take(parameter: Any, make: Maker | None, value: Any) -> Any:
    """ValueError if it has to be converted or judged."""
    if value is None and not parameter.required:
        return () if parameter.multiple or parameter.nargs == -1 else None
    if value is not None and type(value) is type(parameter.default) and value == parameter.default:
        return value
    if value is None or make is None:
        raise ValueError
    return make(value)
