"""Line charts: one line for each series over the same places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rollview.lab.svg import BLUE, GREEN, INK, PALE, RED, Drawing

_WIDTH, _HEIGHT, _LEFT, _TOP = 560, 320, 80, 50
_COLOURS = (BLUE, RED, GREEN, INK, PALE)


def draw_lines(title: str, axes: tuple[str, str], places: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """``axes``: what lies along and what lies up; the latter begins at 0."""
    drawing = Drawing(_LEFT + _WIDTH + 190, _TOP + _HEIGHT + 60)
    most = max(max(values) for values in series.values())
    drawing.text(16, 24, title, size=15)
    drawing.line(_LEFT, _TOP + _HEIGHT, _LEFT + _WIDTH, _TOP + _HEIGHT)
    drawing.line(_LEFT, _TOP, _LEFT, _TOP + _HEIGHT)
    for place, text in enumerate(places):
        drawing.text(_along(place, places), _TOP + _HEIGHT + 18, text, anchor="middle")
    drawing.text(_LEFT + _WIDTH, _TOP + _HEIGHT + 38, axes[0], anchor="end")
    drawing.text(_LEFT, _TOP - 10, axes[1])
    for level in range(5):
        drawing.line(_LEFT, _up(level, 4), _LEFT + _WIDTH, _up(level, 4), PALE, dashed=True)
        drawing.text(_LEFT - 8, _up(level, 4) + 4, f"{most * level / 4:.3g}", anchor="end")
    for number, (colour, (name, values)) in enumerate(zip(_COLOURS, series.items(), strict=False)):
        points = [(_along(place, places), _up(value, most)) for place, value in enumerate(values)]
        for (x1, y1), (x2, y2) in pairwise(points):
            drawing.line(x1, y1, x2, y2, colour)
        drawing.box(_LEFT + _WIDTH + 16, _TOP + 22 * number, 10, 10, colour, colour)
        drawing.text(_LEFT + _WIDTH + 32, _TOP + 22 * number + 10, name, colour)
    return drawing.to_svg()


def _along(place: int, places: Sequence[str]) -> float:
    return _LEFT + _WIDTH * place / max(1, len(places) - 1)


def _up(value: float, most: float) -> float:
    return _TOP + _HEIGHT * (1 - value / most)
