"""The page of the Python API, from signatures and docstrings of what ``rollview`` exports."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import rollview
from rollview import results

_INTRODUCTION = """\
`import rollview` gives these names; everything else is private. Every error is a [`rollview.RollviewError`](errors.md).
"""


def python_page(header: str) -> str:
    classes = [name for name in rollview.__all__ if isinstance(getattr(rollview, name), type)]
    functions = [name for name in rollview.__all__ if inspect.isroutine(getattr(rollview, name))]
    parts = [
        header,
        "# Python\n",
        _INTRODUCTION,
        *(_function(f"rollview.{name}", getattr(rollview, name)) for name in functions),
        *(_class(f"rollview.{name}", getattr(rollview, name)) for name in classes if name != "RollviewError"),
        "## rollview.results\n",
        "Frozen values; `to_json()` gives each in JSON's own types.\n",
        "| class | fields | |\n|---|---|---|\n" + "\n".join(_result_rows()) + "\n",
    ]
    return "\n".join(parts)


def _function(path: str, function: Any, level: str = "##") -> str:
    said = inspect.getdoc(function) or ""
    return f"{level} {path}\n\n```text\n{path.rpartition('.')[2]}{_signature(function)}\n```\n\n{_prose(said)}\n"


def _signature(function: Any) -> str:
    """With the names of types as the code writes them."""
    text = str(inspect.signature(function)).replace("'", "")
    text = re.sub(r"\(self(, )?", "(", text)
    return _wrapped(text)


def _wrapped(text: str) -> str:
    if len(text) < 100:
        return text
    inside, _, answer = text.rpartition(") -> ")
    return "(\n    " + re.sub(r", (?=\*?\w+(:|=|,|$))", ",\n    ", inside[1:]) + f"\n) -> {answer}"


def _class(path: str, kind: type) -> str:
    parts = [f"## {path}\n", _prose(_own_doc(kind)) + "\n"]
    if is_dataclass(kind):
        parts.append("".join(f"* `{one.name}`: `{one.type}`\n" for one in fields(kind)))
    parts += [_function(f"{path}.{name}", member, "###") for name, member in _methods(kind)]
    return "\n".join(parts)


def _own_doc(kind: type) -> str:
    """A dataclass without words has its signature for a docstring."""
    said = inspect.cleandoc(kind.__doc__ or "")
    return "" if said.startswith(f"{kind.__name__}(") else said


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(kind).items():
        plain = member.__func__ if isinstance(member, classmethod) else member
        if not name.startswith("_") and inspect.isfunction(plain) and inspect.getdoc(plain):
            yield name, getattr(kind, name)


def _prose(text: str) -> str:
    return text.replace("``", "`")


def _result_rows() -> Iterator[str]:
    for name in results.__all__:
        kind = getattr(results, name)
        if is_dataclass(kind):
            names = ", ".join(f"`{one.name}`" for one in fields(kind))
            yield f"| `{name}` | {names} | {' '.join(_prose(_own_doc(kind)).split())} |"
