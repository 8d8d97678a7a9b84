"""How answers read as text: one module per subject, one function per kind of answer."""

from rollview.cli.render import experiments, relations, schemas, sources, space, statements, status, subscribers, views
from rollview.cli.render.dispatch import render

__all__ = [
    "experiments",
    "relations",
    "render",
    "schemas",
    "sources",
    "space",
    "statements",
    "status",
    "subscribers",
    "views",
]
