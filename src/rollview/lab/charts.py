"""Message charts: one line down for the warehouse and one for each source, one row per event."""

from __future__ import annotations

from collections.abc import Sequence

from rollview.lab.simulator import TraceLine
from rollview.lab.svg import BLUE, GREEN, INK, PALE, RED, Drawing

_ROW, _TOP, _LEFT, _APART = 34, 60, 330, 330


def draw_messages(title: str, sources: Sequence[str], trace: Sequence[TraceLine]) -> str:
    height = _TOP + _ROW * (len(trace) + 1)
    drawing = Drawing(_LEFT + _APART * len(sources) + 40, height)
    lanes = {"": _LEFT} | {name: _LEFT + _APART * (i + 1) for i, name in enumerate(sources)}
    drawing.text(16, 24, title, size=15)
    for name, x in lanes.items():
        drawing.text(x, _TOP - 14, name or "warehouse", anchor="middle")
        drawing.line(x, _TOP - 6, x, height - 10, PALE)
    sent: dict[int, int] = {}
    for row, line in enumerate(trace):
        _event(drawing, line, _TOP + _ROW * row + 14, lanes, sent)
    return drawing.to_svg()


def _event(drawing: Drawing, line: TraceLine, y: int, lanes: dict[str, int], sent: dict[int, int]) -> None:
    home, there = lanes[""], lanes[line.source]
    if line.kind in ("commit", "answer"):
        if line.answers is not None and line.answers in sent:
            drawing.arrow(home, sent[line.answers], there, y, BLUE)
        drawing.text(there + 8, y + 4, line.text, INK if line.kind == "commit" else GREEN)
    elif line.kind == "hear" and line.message in sent:
        drawing.arrow(there, sent[line.message], home, y, INK if line.text.startswith("U") else GREEN)
    elif line.kind == "ask":
        drawing.text(home - 8, y + 4, line.text, BLUE, anchor="end")
    else:
        drawing.text(home - 8, y + 4, line.text, RED if line.kind != "publish" else INK, anchor="end")
        drawing.box(home - 4, y - 4, 8, 8, INK)
    if line.message is not None and line.kind != "hear":
        sent[line.message] = y
