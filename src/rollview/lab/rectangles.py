"""Rectangles of propagation: Salem et al., *How To Roll a Join*, figures 6 to 9.

A point (a, b) is the join of the first table's rows at a with the second's at b. A query is a rectangle: over the
interval of a table that it takes changes of, and from the beginning to where it saw a table itself. Forward queries are
open, compensations shaded by their sign. Of more than two tables, the first two are shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from rollview.compensate.timed import Part
from rollview.lab.propagation import ExecutedQuery
from rollview.lab.svg import BLUE, FILLS, INK, PALE, RED, Drawing

_UNIT, _LEFT, _TOP = 56, 60, 60


def draw_rectangles(title: str, names: Sequence[str], queries: Sequence[ExecutedQuery], mark: int) -> str:
    last = max([query.seen for query in queries] + [mark])
    side = _UNIT * last
    drawing = Drawing(_LEFT + side + 260, _TOP + side + 60)
    drawing.text(16, 24, title, size=15)
    for csn in range(last + 1):
        drawing.line(_LEFT + csn * _UNIT, _TOP + side, _LEFT + csn * _UNIT, _TOP, PALE, dashed=True)
        drawing.line(_LEFT, _TOP + csn * _UNIT, _LEFT + side, _TOP + csn * _UNIT, PALE, dashed=True)
        drawing.text(_LEFT + csn * _UNIT, _TOP + side + 18, str(csn), anchor="middle")
        drawing.text(_LEFT - 10, _TOP + side - csn * _UNIT + 4, str(csn), anchor="end")
    drawing.text(_LEFT + side, _TOP + side + 36, f"{names[1]} →", anchor="end")
    drawing.text(_LEFT - 30, _TOP - 14, f"↑ {names[0]}")
    for number, query in enumerate(queries):
        _rectangle(drawing, number, query, side)
    drawing.box(_LEFT, _TOP + side - mark * _UNIT, mark * _UNIT, mark * _UNIT, edge=INK)
    drawing.text(_LEFT + side + 20, _TOP + side, f"complete up to {mark}")
    return drawing.to_svg()


def _rectangle(drawing: Drawing, number: int, executed: ExecutedQuery, side: int) -> None:
    (low, high), (left, right) = (_span(part, executed.seen) for part in executed.query.parts[:2])
    x, y = _LEFT + left * _UNIT, _TOP + side - high * _UNIT
    # Each a little smaller than the one before, so that all edges can be told apart.
    inset = 2 + number % 6 * 2
    forward = executed.query.is_forward
    fill = "none" if forward else FILLS[executed.query.sign]
    edge = INK if forward else (BLUE if executed.query.sign > 0 else RED)
    width, height = (right - left) * _UNIT - 2 * inset, (high - low) * _UNIT - 2 * inset
    if width > 0 and height > 0:
        drawing.box(x + inset, y + inset, width, height, fill, edge, 0.5)
        drawing.text(x + inset + 4, y + inset + 12, str(number + 1), edge, size=10)
    sign = "+" if executed.query.sign > 0 else "−"
    parts = " ".join(_told(place, part) for place, part in enumerate(executed.query.parts))
    drawing.text(
        _LEFT + side + 20, _TOP + 16 * number, f"{number + 1}: {sign} {parts} at {executed.seen}", edge, size=11
    )


def _span(part: Part, seen: int) -> tuple[int, int]:
    return (0, seen) if part is None else (part.after, part.through)


def _told(place: int, part: Part) -> str:
    return f"R{place + 1}" if part is None else f"R{place + 1}{part}"
