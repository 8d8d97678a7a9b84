"""The medians as bars, one group per view and scenario, on a logarithmic scale: shorter is faster."""

from __future__ import annotations

from pathlib import Path

from bench.goals import Rounds, median

COLOURS = {
    "rollview": "#0b6e4f",
    "hand-written Spark": "#6ba368",
    "Spark full": "#c44536",
    "PostgreSQL REFRESH": "#336791",
    "DuckDB full": "#e0b400",
    "tiny query": "#888888",
}


def draw(found: Rounds, target: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    groups = [(name, view) for name, seconds in found.items() for view in seconds[0]]
    figure, axes = pyplot.subplots(figsize=(9, 0.6 + 0.55 * len(groups)))
    for place, (name, view) in enumerate(groups):
        sides = [side for side in COLOURS if side in found[name][0][view]]
        height = 0.8 / len(sides)
        for number, side in enumerate(sides):
            axes.barh(place + number * height, median(found, name, view, side), height, color=COLOURS[side], label=side)
    axes.set_yticks([place + 0.35 for place in range(len(groups))], [f"{view}, {name}" for name, view in groups])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("seconds to bring the view up to date (median)")
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.legend(handles.values(), handles.keys(), fontsize="small")
    figure.tight_layout()
    figure.savefig(target)
