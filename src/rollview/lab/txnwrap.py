"""Figures 12 to 21 of *Multiversion Based View Maintenance Over Distributed Data Sources*, on a virtual clock.

The graphs are not in our copy of the text, so what is compared is what the prose says of each; a verdict tells whether
our numbers show the same. Law: the same service times give the same numbers and the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from rollview.errors import UsageError
from rollview.lab.line_chart import draw_lines
from rollview.lab.maintenance import TestBed, cost_of_one, run_locked, run_schema_changes, run_versioned
from rollview.lab.service_times import RECORDED, ROWS, SLOWNESS, ServiceTimes

NAME = "txnwrap"
PAPER = "Chen et al., Multiversion Based View Maintenance"
THREADS = (1, 2, 3, 4, 5, 6, 8, 10)
SHARES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1)
_SEEDS = range(1, 9)

Series = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class ProseClaim:
    """What the prose says, and whether our numbers show it."""

    text: str
    holds: bool


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    number: int
    title: str
    axes: tuple[str, str]
    places: tuple[str, ...]
    series: Series
    findings: tuple[ProseClaim, ...]

    @property
    def holds(self) -> bool:
        return all(one.holds for one in self.findings)

    def draw(self) -> str:
        return draw_lines(f"Figure {self.number}: {self.title}", self.axes, self.places, self.series)

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Headings and rows."""
        rows = [
            (place, *(_shown(values[number]) for values in self.series.values()))
            for number, place in enumerate(self.places)
        ]
        return (self.axes[0], *self.series), rows


def check_number(number: int) -> None:
    if number not in _FIGURES:
        raise UsageError(f"There is no experiment for figure {number}.", hint=f"Give one of {_listed(_FIGURES)}.")


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def title_of(number: int) -> str:
    return f"figure {number}: {_FIGURES[number][0]}"


@lru_cache
def measure_figure(number: int, times: ServiceTimes = RECORDED) -> MeasuredFigure:
    check_number(number)
    title, axes, measure = _FIGURES[number]
    places, series, findings = measure(TestBed(times=times.slower(SLOWNESS)))
    return MeasuredFigure(number, title, axes, places, series, tuple(ProseClaim(*one) for one in findings))


Measured = tuple[tuple[str, ...], Series, list[tuple[str, bool]]]


def _figure_12(bed: TestBed) -> Measured:
    updates = range(0, 601, 100)
    wrapped, swept = (_seconds(cost_of_one(bed, n, swept=way) for n in updates) for way in (False, True))
    return (
        tuple(map(str, updates)),
        {"TxnWrap": wrapped, "SWEEP": swept},
        [
            ("without concurrent updates TxnWrap is dearer", wrapped[0] > swept[0]),
            ("TxnWrap's cost is nearly constant", max(wrapped) <= 1.05 * min(wrapped)),
            ("SWEEP's cost grows with every concurrent update", _grows(swept) and swept[-1] > 1.5 * swept[0]),
        ],
    )


def _figure_13(bed: TestBed) -> Measured:
    shares = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.2, 1.5)
    one = run_schema_changes(bed, 1, 0.0, redone=False).total

    def costs(redone: bool) -> tuple[float, ...]:
        beds = [replace(bed, seed=seed) for seed in _SEEDS]
        runs = ([run_schema_changes(b, 20, share * one, redone=redone).total for b in beds] for share in shares)
        return _seconds(sum(totals) / len(totals) for totals in runs)

    wrapped, redone = costs(False), costs(True)
    apart = [number for number, share in enumerate(shares) if share > 1]
    return (
        tuple(f"{share:g}" for share in shares),
        {"TxnWrap": wrapped, "DyDa": redone},
        [
            ("DyDa pays for aborts, more or less with the interval", max(redone) > 1.02 * redone[-1]),
            ("TxnWrap never aborts: its cost is steady", max(wrapped) <= 1.02 * min(wrapped)),
            (
                "both cost the same once the interval exceeds one maintenance",
                all(abs(redone[n] / wrapped[n] - 1) <= 0.05 for n in apart),
            ),
        ],
    )


def _figure_14(bed: TestBed) -> Measured:
    wrapped = _seconds(cost_of_one(replace(bed, share=share), 0, swept=False) for share in SHARES)
    whole = _seconds([cost_of_one(bed, 0, swept=True)]) * len(SHARES)
    crossings = sum((a > b) != (c > d) for (a, b), (c, d) in pairwise(zip(wrapped, whole, strict=True)))
    return (
        _percent(SHARES),
        {"TxnWrap": wrapped, "DyDa": whole},
        [
            ("the smaller the wrapper, the cheaper", _grows(wrapped[::-1])),
            ("TxnWrap crosses DyDa once", crossings == 1 and wrapped[0] > whole[0]),
        ],
    )


def _figure_15(bed: TestBed) -> Measured:
    beds = [replace(bed, share=share) for share in SHARES]
    wrapped = _seconds(run_schema_changes(one, 1, 0.0, redone=False).total for one in beds)
    whole = _seconds([run_schema_changes(bed, 1, 0.0, redone=True).total]) * len(SHARES)
    update, small = (cost_of_one(one, 0, swept=False) / 1000 for one in (bed, beds[-1]))
    swept = cost_of_one(bed, 0, swept=True) / 1000
    return (
        _percent(SHARES),
        {"TxnWrap": wrapped, "DyDa": whole},
        [
            ("the smaller the wrapper, the cheaper", _grows(wrapped[::-1])),
            ("a schema change is far dearer than an update", wrapped[0] > 10 * update),
            ("versions cost little beside it", wrapped[0] <= 1.05 * whole[0]),
            ("small wrappers gain more over DyDa than they do for updates", wrapped[-1] / whole[-1] < small / swept),
        ],
    )


def _figure_16(bed: TestBed) -> Measured:
    serial, totals = _by_threads(bed, 500)
    gain = _gains(serial, totals)
    return (
        _with_serial(),
        {"total time": (serial, *totals)},
        [
            ("one thread takes about as long as the serial scheduler", totals[0] <= 1.05 * serial),
            ("the knee is at about five threads", _has_knee_at_five(totals)),
            (f"about +150 % at five threads: +{gain[4]:.0%}", 1.2 <= gain[4] <= 1.9),
        ],
    )


def _figure_17(bed: TestBed) -> Measured:
    gains = {hosts: _gains(*_by_threads(replace(bed, hosts=hosts), 500)) for hosts in range(1, 7)}
    at_five = [gain[4] for gain in gains.values()]
    return (
        _numbers(THREADS),
        {f"{hosts} sources" if hosts > 1 else "1 source": tuple(gains[hosts]) for hosts in (1, 2, 3, 6)},
        [
            ("the more sources, the more gain", _grows([at_five[n] for n in (0, 1, 2, 5)])),
            ("relations in one source gain hardly anything", at_five[0] < 0.1),
            (f"six sources: about +250 % at five threads: +{at_five[5]:.0%}", 2.0 <= at_five[5] <= 3.0),
        ],
    )


def _figure_18(bed: TestBed) -> Measured:
    runs = {delay: _by_threads(replace(bed, delay=delay), 500) for delay in (0.0, 10.0, 30.0)}
    none, much = runs[0.0], runs[30.0]
    return (
        _with_serial(),
        {f"{delay:g} ms": (serial, *totals) for delay, (serial, totals) in runs.items()},
        [
            ("delay hurts the serial scheduler", runs[10.0][0] > 1.05 * none[0] and much[0] > 1.2 * none[0]),
            ("threads hide the delay", much[1][-1] <= 1.05 * none[1][-1]),
        ],
    )


def _figure_19(bed: TestBed) -> Measured:
    serial, totals = _by_threads(bed, 400, schema_changes=2)
    gain, without = _gains(serial, totals), _gains(*_by_threads(bed, 400))
    return (
        _with_serial(),
        {"total time": (serial, *totals)},
        [
            ("the knee is near five threads", _has_knee_at_five(totals)),
            (
                f"schema changes leave less to gain: +{gain[4]:.0%} at five threads, +{without[4]:.0%} without them",
                0.2 < gain[4] < 0.8 * without[4],
            ),
        ],
    )


def _figure_20(bed: TestBed) -> Measured:
    one, six = (_by_threads(placed, 500)[1] for placed in _placed(bed))
    return (
        _numbers(THREADS),
        {"the view's engine": one, "six engines": six},
        [
            ("wrappers in the view's engine hardly gain", one[0] <= 1.05 * min(one)),
            ("six engines lose when serial", six[0] > one[0]),
            ("and win with more threads", six[-1] < one[-1]),
        ],
    )


def _figure_21(bed: TestBed) -> Measured:
    own, far = _placed(bed)
    locks = _seconds(run_locked(own, 500, threads).total for threads in THREADS)
    versions, six = (_by_threads(placed, 500)[1] for placed in (own, far))
    return (
        _numbers(THREADS),
        {"locks": locks, "versions": versions, "six engines": six},
        [
            (
                "in one engine locks take less time than versions",
                all(a < b for a, b in zip(locks, versions, strict=True)),
            ),
            ("neither gains by threads", all(one[0] <= 1.05 * min(one) for one in (locks, versions))),
            ("six engines gain", six[-1] < 0.5 * six[0]),
        ],
    )


def _placed(bed: TestBed) -> tuple[TestBed, TestBed]:
    """All wrappers in the view's engine, and in six with a delay of 100 ms for 20 bytes."""
    return replace(bed, hosts=0), replace(bed, hosts=6, delay=100.0)


def _by_threads(bed: TestBed, updates: int, schema_changes: int = 0) -> tuple[float, tuple[float, ...]]:
    """Seconds of the serial scheduler, and with each number of threads."""
    serial = run_versioned(bed, updates, 1, serial=True, schema_changes=schema_changes)
    totals = (run_versioned(bed, updates, threads, schema_changes=schema_changes).total for threads in THREADS)
    return serial.total / 1000, _seconds(totals)


def _gains(serial: float, totals: Sequence[float]) -> list[float]:
    return [serial / total - 1 for total in totals]


def _has_knee_at_five(totals: Sequence[float]) -> bool:
    """Up to five threads each saves much; twice as many save little more."""
    five, ten = totals[THREADS.index(5)], totals[THREADS.index(10)]
    return _grows(totals[4::-1]) and totals[0] - five > 5 * (five - ten)


def _grows(values: Sequence[float]) -> bool:
    return all(one < following for one, following in pairwise(values))


def _seconds(milliseconds: Iterable[float]) -> tuple[float, ...]:
    return tuple(one / 1000 for one in milliseconds)


def _shown(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value if abs(value) >= 0.005 else 0:.3g}"


def _numbers(threads: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(str, threads))


def _with_serial() -> tuple[str, ...]:
    return ("S", *_numbers(THREADS))


def _percent(shares: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"{share:.0%}" for share in shares)


_TIME, _COST = "seconds in total", "seconds"
_FIGURES: dict[int, tuple[str, tuple[str, str], Callable[[TestBed], Measured]]] = {
    12: ("concurrent data updates", ("concurrent updates", "seconds for one update"), _figure_12),
    13: ("concurrent schema changes", ("interval, of one maintenance", "seconds for 20 schema changes"), _figure_13),
    14: ("updates with smaller wrappers", ("size of the wrappers", "seconds for one update"), _figure_14),
    15: ("schema changes with smaller wrappers", ("size of the wrappers", "seconds for one change"), _figure_15),
    16: ("parallel maintenance of 500 updates", ("threads (S: serial)", _TIME), _figure_16),
    17: ("gain by threads, relations in few or many sources", ("threads", "serial ÷ parallel − 1"), _figure_17),
    18: ("delay of the network for 20 bytes", ("threads (S: serial)", _TIME), _figure_18),
    19: ("400 updates with two schema changes", ("threads (S: serial)", _TIME), _figure_19),
    20: ("where the wrappers are", ("threads", _TIME), _figure_20),
    21: ("TxnWrap and self-maintenance", ("threads", _TIME), _figure_21),
}
NUMBERS = tuple(_FIGURES)


def told_lines(figure: MeasuredFigure) -> tuple[str, ...]:
    """The numbers and the verdict, for people."""
    headings, rows = figure.table()
    widths = [max(len(row[place]) for row in [headings, *rows]) for place in range(len(headings))]
    table = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [headings, *rows])
    found = (f"{'yes' if one.holds else 'NO ':3} {one.text}" for one in figure.findings)
    return (f"{figure.axes[1]}:", *table, "", *found)


def txnwrap_page(figures: Sequence[MeasuredFigure]) -> str:
    """All of them as a page; the pictures beside it."""
    parts = [_HEAD]
    for figure in figures:
        headings, rows = figure.table()
        table = "\n".join(f"| {' | '.join(row)} |" for row in (headings, ("---",) * len(headings), *rows))
        found = "\n".join(f"* {'holds' if one.holds else 'DOES NOT HOLD'}: {one.text}" for one in figure.findings)
        parts.append(
            f"## Figure {figure.number}: {figure.title}\n\n![Figure {figure.number}](txnwrap-{figure.number}.svg)\n\n"
            f"{figure.axes[1].capitalize()}:\n\n{table}\n\n{found}\n"
        )
    return "\n".join(parts)


_HEAD = f"""# Versions and threads: figures 12 to 21

Written by `make experiments`; the same service times give the same bytes. The experiments of Chen et al., *Multiversion
Based View Maintenance* ([bibliography](../bibliography.md)), on a virtual clock with one queue per host: six relations
of four columns and {ROWS:,} rows on three hosts, a view that joins all six on a fourth, and one update in each
transaction. TxnWrap keeps literal versions (V_Start, V_End), SWEEP compensates literally, DyDa aborts and begins again,
self-maintenance takes table locks and meets deadlocks.

What a query takes was measured on SQLite, and `rollview lab run txnwrap --figure 16 --measure` measures it again. It is
stretched by {SLOWNESS:g}, a guess at the paper's machines, so that its delays are in proportion; only figures with
delays depend on that. A query takes up to half more or less than the mean. The paper's graphs are not in its text, so
the verdicts are about what its prose says.

Where a number differs: for figure 19 the prose has about +45 % at five threads. Here a schema change costs as much as
some forty updates; there it must have cost far more.
"""
