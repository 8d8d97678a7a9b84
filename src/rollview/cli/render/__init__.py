"""How answers read as text: one module per subject, one function per kind of answer."""

from rollview.cli.render.dispatch import render

__all__ = ["render"]
