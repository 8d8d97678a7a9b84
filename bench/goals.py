"""The goals, and what a run says of each: a figure, and whether it is met."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Round = dict[str, dict[str, float]]
"""Seconds by view and side."""
Rounds = dict[str, list[Round]]
"""By scenario."""
Figures = dict[str, dict[str, float]]
"""By kind of source: what ``bench.capture`` measures."""
Planned = list[list[dict[str, float]]]
"""By view and round: what ``bench.plans`` measures, seconds of each side; in its first round nobody knew the view."""


@dataclass(frozen=True, slots=True)
class Verdict:
    number: str
    goal: str
    figure: str
    met: bool | None
    """None: not measured."""


def verdicts(
    found: Rounds,
    captured: Figures | None = None,
    plain_rows: Figures | None = None,
    hot_keys: Figures | None = None,
    planned: Planned | None = None,
    routed: Figures | None = None,
    side_by_side: Figures | None = None,
) -> list[Verdict]:
    """``plain_rows``: by scale, what ``bench.plain_rows`` measures. ``hot_keys``: seconds by view and commits.
    ``routed``: what ``bench.routing`` measures."""
    return [
        *(_verdict(found, *goal) for goal in _GOALS),
        *(_verdict(captured or {}, *goal) for goal in _CAPTURE_GOALS),
        *(_verdict(plain_rows or {}, *goal) for goal in _ROW_GOALS),
        _verdict(hot_keys or {}, *_HOT_KEYS_GOAL),
        _verdict(side_by_side or {}, *_SIDE_BY_SIDE_GOAL),
        _verdict({"views": planned} if planned else {}, *_PLAN_GOAL),
        *(_verdict(routed or {}, *goal) for goal in _ROUTING_GOALS),
    ]


def ratio(found: Rounds, scenario: str, view: str, slow: str, fast: str) -> float:
    """Median over the rounds of how many times longer the first side took."""
    return statistics.median(measured[view][slow] / measured[view][fast] for measured in found[scenario])


def median(found: Rounds, scenario: str, view: str, side: str) -> float:
    return statistics.median(measured[view][side] for measured in found[scenario])


Judged = Iterable[tuple[str, float, Callable[[float], bool]]]


def _verdict(found: Any, number: str, goal: str, measure: Callable[[Any], Judged]) -> Verdict:
    try:
        figures = list(measure(found))
    except KeyError:
        return Verdict(number, goal, "not measured", None)
    text = ", ".join(f"{what} {figure:.2f}" if figure < 10 else f"{what} {figure:.0f}" for what, figure, _ in figures)
    return Verdict(number, goal, text, all(good(figure) for _, figure, good in figures))


def _least(bound: float) -> Callable[[float], bool]:
    return lambda figure: figure >= bound


def _most(bound: float) -> Callable[[float], bool]:
    return lambda figure: figure <= bound


def _p1(found: Rounds) -> Judged:
    yield "× Spark", ratio(found, "sf1 keys 0.1%", "v1", "Spark full", "rollview"), _least(12)
    yield "× PostgreSQL", ratio(found, "sf1 keys 0.1%", "v1", "PostgreSQL REFRESH", "rollview"), _least(8)


def _p2(found: Rounds) -> Judged:
    yield "× Spark", ratio(found, "sf1 plain 0.1%", "v1", "Spark full", "rollview"), _least(6)


def _p3(found: Rounds) -> Judged:
    yield "× Spark", ratio(found, "sf5 keys 1000", "v1", "Spark full", "rollview"), _least(40)
    yield "× DuckDB", ratio(found, "sf5 keys 1000", "v1", "DuckDB full", "rollview"), _least(5)


def _p4(found: Rounds) -> Judged:
    for keys, bound in (("keys", 1.3), ("plain", 2.0)):
        large, small = (median(found, f"sf{scale} {keys} 1000", "v1", "rollview") for scale in (5, 1))
        yield keys, large / small, _most(bound)


def _p5(found: Rounds) -> Judged:
    for view in ("v1", "v2", "v3", "v4"):
        yield view, ratio(found, "sf1 keys 0.1%", view, "rollview", "hand-written Spark"), _most(1.2)


def _p6(found: Rounds) -> Judged:
    for scenario in ("sf1 keys 0.1%", "sf1 keys 1%", "sf1 keys 10%"):
        worst = max(ratio(found, scenario, view, "rollview", "Spark full") for view in ("v1", "v2", "v3", "v4"))
        yield scenario.rsplit(" ", 1)[1], worst, _most(1.1)


def _p7(found: Rounds) -> Judged:
    yield "× tiny", ratio(found, "sf1 keys 10", "v1", "rollview", "tiny query"), _most(2.5)


def _p8(found: Rounds) -> Judged:
    yield "× pg_ivm", ratio(found, "sf1 keys 1% pg_ivm", "v1", "pg_ivm", "rollview"), _least(10)


def _p9(found: Rounds) -> Judged:
    yield "roll ×", ratio(found, "sf1 keys 0.1%", "v1", "Spark full", "roll to the past"), _least(10)
    yield "read ×", ratio(found, "sf1 keys 0.1%", "v1", "read the past", "read now"), _most(2)


def _c1(captured: Figures) -> Judged:
    for kind, bound in (("postgres", 0.3), ("sqlite", 0.3), ("mariadb", 0.5)):
        yield kind, captured[kind]["captured"] / captured[kind]["raw"], _least(bound)


def _c2(captured: Figures) -> Judged:
    for kind, bound in (("postgres", 0.95), ("mariadb", 0.95), ("sqlite", 0.0)):
        yield kind, captured[kind]["beside"] / captured[kind]["without"], _least(bound)


def _k4(rows: Figures) -> Judged:
    one = rows["sf1"]
    yield "rows", one["rows"] / one["plain"], _most(1.15)
    for view in ("v2", "v3", "v4"):
        yield view, one[f"recompute {view}"] / one[f"full {view}"], _most(1.1)


def _k5(rows: Figures) -> Judged:
    yield "÷ refresh", rows["sf1"]["transaction"] / rows["sf1"]["refresh v1"], _most(3)
    yield "SF5/SF1", rows["sf5"]["transaction"] / rows["sf1"]["transaction"], _most(1.3)


def _k6(rows: Figures) -> Judged:
    yield "÷ copy", rows["sf1"]["load"] / rows["sf1"]["copy"], _most(3)


def _p11(planned: dict[str, Planned]) -> Judged:
    for name, rounds, bound in (("first ×", slice(0, 1), 2.0), ("repeated ×", slice(1, None), 0.5)):
        measured = [one for view in planned["views"] for one in view[rounds]]
        ours, theirs = (statistics.median(one[side] for one in measured) for side in ("rollview", "Spark"))
        yield name, ours / theirs, _most(bound)


def _q1(routed: Figures) -> Judged:
    one = routed["roll-up"]
    yield "× tables", one["tables"] / one["views"], _least(20)
    yield "a new text ×", one["new text, tables"] / one["new text"], _least(20)


def _q2(routed: Figures) -> Judged:
    one = routed["residual"]
    yield "× tables", one["tables"] / one["views"], _least(8)
    yield "÷ propagate", one["views"] / one["propagate"], _most(1.3)


def _q3(routed: Figures) -> Judged:
    ratios = sorted(routed["cells"].values())
    yield "in 90 %", ratios[int(0.9 * len(ratios)) - 1], _most(1.15)
    yield "worst", ratios[-1], _most(1.5)


def _q4(routed: Figures) -> Judged:
    yield "ms", routed["among"]["milliseconds"], _most(50)


def _q5(routed: Figures) -> Judged:
    one = routed["commits"]
    yield "later ÷ none", one["later"] / one["none"], _most(1.05)
    yield "immediate ÷ (commit + 1.2 refresh)", one["immediate"] / (one["none"] + 1.2 * one["refresh"]), _most(1)


def _p12(seconds: Figures) -> Judged:
    taken = seconds["eight small views"]
    yield "4 workers ×", taken["4 workers"] / taken["serial"], _most(0.7)
    yield "1 worker ×", taken["1 worker"] / taken["serial"], _most(1.05)


def _k1(seconds: Figures) -> Judged:
    """Of all views the worst: growth of the time per commit, and the time beside that of the linear view."""
    sizes = sorted(map(int, seconds["sum"]))
    few, many = str(sizes[0]), str(sizes[-1])
    keyed = {view: found for view, found in seconds.items() if view != "sum"}
    yield "growth", max(one[many] / one[few] for one in keyed.values()) * sizes[0] / sizes[-1], _most(1.3)
    yield "÷ SUM", max(one["4000"] for one in keyed.values()) / seconds["sum"]["4000"], _most(3)


_GOALS: tuple[tuple[str, str, Callable[[Rounds], Judged]], ...] = (
    ("P1", "V1, 0.1 %, SF1, declared keys: ≥ 12× Spark full, ≥ 8× PostgreSQL REFRESH", _p1),
    ("P2", "the same without declared keys: ≥ 6× Spark full", _p2),
    ("P3", "V1, k=1,000, SF5: ≥ 40× Spark full, ≥ 5× DuckDB full", _p3),
    ("P4", "k=1,000, SF5/SF1: ≤ 1.3 with keys, ≤ 2.0 without", _p4),
    ("P5", "≤ 1.2× the best hand-written Spark code", _p5),
    ("P6", "every view and batch: ≤ 1.1× Spark full", _p6),
    ("P7", "V1, k=10: ≤ 2.5× a tiny query", _p7),
    ("P8", "V1, 1 %: ≥ 10× cheaper than what pg_ivm adds to the writers", _p8),
    ("P9", "roll to the past ≥ 10× faster than recompute; read the past ≤ 2× read now", _p9),
)
_PLAN_GOAL: tuple[str, str, Callable[[dict[str, Planned]], Judged]] = (
    "P11",
    "eight inputs of ≤ 1,000 rows, all changed, ÷ Spark from nothing: first refresh ≤ 2, repeated ≤ 0.5",
    _p11,
)
_SIDE_BY_SIDE_GOAL: tuple[str, str, Callable[[Figures], Judged]] = (
    "P12",
    "eight small views on two cores ÷ serial: 4 workers ≤ 0.7, 1 worker ≤ 1.05",
    _p12,
)
_CAPTURE_GOALS: tuple[tuple[str, str, Callable[[Figures], Judged]], ...] = (
    ("C1", "captured rows per second ÷ the driver's raw reader: PostgreSQL and SQLite ≥ 0.3, MariaDB ≥ 0.5", _c1),
    ("C2", "writers' commits per second, captured ÷ not: ≥ 0.95; SQLite's triggers cost what they cost", _c2),
)
_ROW_GOALS: tuple[tuple[str, str, Callable[[Figures], Judged]], ...] = (
    ("K4", "SF1, 1 % pending: rows ≤ 1.15× plain Parquet; a recomputed view ≤ 1.1× Spark full", _k4),
    ("K5", "a transaction that replaces 1,500 orders: ≤ 3× the refresh of V1; SF5 ≤ 1.3× SF1", _k5),
    ("K6", "loading SF1 with keys and foreign keys: ≤ 3× Spark copying the rows", _k6),
)
_ROUTING_GOALS: tuple[tuple[str, str, Callable[[Figures], Judged]], ...] = (
    ("Q1", "a roll-up from a view, asked before or new: ≥ 20× the tables", _q1),
    ("Q2", "a view with 0.1 % pending: ≥ 8× the tables, ≤ 1.3× propagating it", _q2),
    ("Q3", "30 cells: the chosen way ≤ 1.15× the best in 90 %, never > 1.5×", _q3),
    ("Q4", "a way among 200 views: ≤ 50 ms", _q4),
    ("Q5", "a commit below no immediate view ≤ 1.05×, below one ≤ commit + 1.2× its refresh", _q5),
)
_HOT_KEYS_GOAL = (
    "K1",
    "7 hot keys: time per commit at 64,000 commits ≤ 1.3× at 1,000; at 4,000 ≤ 3× the linear SUM",
    _k1,
)
