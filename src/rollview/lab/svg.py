"""Pictures as SVG text. Law: the same shapes give the same bytes, whatever the clock, fonts or order of sets."""

from __future__ import annotations

from xml.sax.saxutils import escape

INK = "#1f2933"
PALE = "#9aa5b1"
BLUE = "#2b6cb0"
RED = "#c53030"
GREEN = "#2f855a"
FILLS = {1: "#bee3f8", -1: "#fed7d7"}


class Drawing:
    """Shapes in the order in which they are added."""

    def __init__(self, width: int, height: int) -> None:
        self._size = (width, height)
        self._shapes: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str = INK, *, dashed: bool = False) -> None:
        ends = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
        self._shapes.append(f'<line {ends} stroke="{colour}"{_dash(dashed)}/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float, colour: str = INK) -> None:
        self.line(x1, y1, x2, y2, colour)
        back = -6 if x2 > x1 else 6
        points = f"{_n(x2)},{_n(y2)} {_n(x2 + back)},{_n(y2 - 3)} {_n(x2 + back)},{_n(y2 + 3)}"
        self._shapes.append(f'<polygon points="{points}" fill="{colour}"/>')

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str = "none",
        edge: str = INK,
        see: float = 1,
        *,
        dashed: bool = False,
    ) -> None:
        self._shapes.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" fill="{fill}" '
            f'fill-opacity="{see:g}" stroke="{edge}"{_dash(dashed)}/>'
        )

    def text(self, x: float, y: float, words: str, colour: str = INK, *, anchor: str = "start", size: int = 12) -> None:
        self._shapes.append(
            f'<text x="{_n(x)}" y="{_n(y)}" fill="{colour}" text-anchor="{anchor}" font-size="{size}">'
            f"{escape(_visible(words))}</text>"
        )

    def to_svg(self) -> str:
        width, height = self._size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif">'
        )
        paper = f'<rect width="{width}" height="{height}" fill="white"/>'
        return "\n".join([head, paper, *self._shapes, "</svg>"]) + "\n"


def _dash(dashed: bool) -> str:
    return ' stroke-dasharray="4 3"' if dashed else ""


def _visible(words: str) -> str:
    """Control characters, which names of a warehouse may have, are no XML."""
    return "".join(one if one.isprintable() else "\ufffd" for one in words)


def _n(value: float) -> str:
    """Half pixels at most, so that no platform rounds otherwise."""
    return f"{round(value * 2) / 2:g}"
