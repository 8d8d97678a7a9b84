"""Rectangles of propagation: Salem et al., *How To Roll a Join*, figures 6 to 9.

A point (a, b) is the join of the first table's rows at a with the second's at b. A query is a rectangle: over the
interval of a table that it takes changes of, and from the beginning to where it saw a table itself. Forward queries are
open, compensations shaded by their sign; what was not executed, because nothing had changed, is dashed. Of more than
two tables, the first two are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rollview.compensate.timed import Part
from rollview.lab.propagation import ExecutedQuery
from rollview.lab.svg import BLUE, FILLS, INK, PALE, RED, Drawing

_UNIT, _LEFT, _TOP, _LINE = 56, 60, 60, 16


@dataclass(frozen=True, slots=True)
class Rectangle:
    """``spans``: from where to where, of the first two tables. ``told``: its line beside the picture."""

    sign: int
    spans: tuple[tuple[int, int], tuple[int, int]]
    told: str
    is_forward: bool
    executed: bool = True


@dataclass(frozen=True, slots=True)
class TimeFrame:
    """What of time is shown, how large, and which csns are named."""

    begin: int
    last: int
    unit: float
    named: Sequence[int]

    @property
    def side(self) -> int:
        return round(self.unit * (self.last - self.begin))

    def right(self, csn: int) -> float:
        return _LEFT + (csn - self.begin) * self.unit

    def up(self, csn: int) -> float:
        return _TOP + self.side - (csn - self.begin) * self.unit


def draw_executed(title: str, names: Sequence[str], queries: Sequence[ExecutedQuery], mark: int) -> str:
    """Propagation queries of an experiment, from csn 0 on."""
    last = max([query.seen for query in queries] + [mark])
    return draw_rectangles(
        title, names, list(map(_executed, queries)), mark, TimeFrame(0, last, _UNIT, range(last + 1))
    )


def draw_rectangles(
    title: str, names: Sequence[str], rectangles: Sequence[Rectangle], mark: int, frame: TimeFrame, margin: int = 260
) -> str:
    """``margin``: how much room the lines beside the picture need."""
    side, right = frame.side, _LEFT + frame.side
    drawing = Drawing(right + margin, _TOP + max(side, _LINE * len(rectangles) + 20) + 60)
    drawing.text(16, 24, title, size=15)
    for csn in frame.named:
        drawing.line(frame.right(csn), _TOP + side, frame.right(csn), _TOP, PALE, dashed=True)
        drawing.line(_LEFT, frame.up(csn), right, frame.up(csn), PALE, dashed=True)
        drawing.text(frame.right(csn), _TOP + side + 18, str(csn), anchor="middle")
        drawing.text(_LEFT - 10, frame.up(csn) + 4, str(csn), anchor="end")
    if len(names) > 1:
        drawing.text(right, _TOP + side + 36, f"{names[1]} →", anchor="end")
    drawing.text(_LEFT - 30, _TOP - 14, f"↑ {names[0]}")
    for number, one in enumerate(rectangles, 1):
        _draw(drawing, number, one, frame)
        drawing.text(right + 20, _TOP + _LINE * (number - 1), f"{number}: {one.told}", _edge(one), size=11)
    drawing.box(_LEFT, frame.up(mark), frame.right(mark) - _LEFT, _TOP + side - frame.up(mark), edge=INK)
    drawing.text(right + 20, _TOP + max(side, _LINE * len(rectangles) + 20), f"complete up to {mark}")
    return drawing.to_svg()


def _draw(drawing: Drawing, number: int, one: Rectangle, frame: TimeFrame) -> None:
    (low, high), (left, right) = one.spans
    width, height = (right - left) * frame.unit, (high - low) * frame.unit
    # Each a little smaller than the one before, so that all edges can be told apart.
    inset = min(2 + (number - 1) % 6 * 2, width / 4, height / 4)
    x, y = frame.right(left) + inset, frame.up(high) + inset
    fill = "none" if one.is_forward else FILLS[one.sign]
    if width > 0 and height > 0:
        drawing.box(x, y, width - 2 * inset, height - 2 * inset, fill, _edge(one), 0.5, dashed=not one.executed)
        drawing.text(x + 4, y + 12, str(number), _edge(one), size=10)


def _edge(one: Rectangle) -> str:
    if not one.executed:
        return PALE
    return INK if one.is_forward else (BLUE if one.sign > 0 else RED)


def _executed(executed: ExecutedQuery) -> Rectangle:
    query = executed.query
    first, second = (_span(part, executed.seen) for part in query.parts[:2])
    parts = " ".join(_told(place, part) for place, part in enumerate(query.parts))
    told = f"{'+' if query.sign > 0 else '−'} {parts} at {executed.seen}"
    return Rectangle(query.sign, (first, second), told, query.is_forward)


def _span(part: Part, seen: int) -> tuple[int, int]:
    return (0, seen) if part is None else (part.after, part.through)


def _told(place: int, part: Part) -> str:
    return f"R{place + 1}" if part is None else f"R{place + 1}{part}"
