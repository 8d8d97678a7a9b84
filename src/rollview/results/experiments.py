"""What the lab and the judge of histories answer."""

from __future__ import annotations

from dataclasses import dataclass

from rollview.results.answer import Result


@dataclass(frozen=True, slots=True)
class ExperimentLine(Result):
    """An experiment of the lab, and where it is from."""

    name: str
    title: str
    paper: str


@dataclass(frozen=True, slots=True)
class ExperimentList(Result):
    experiments: tuple[ExperimentLine, ...]


@dataclass(frozen=True, slots=True)
class JudgedVersion(Result):
    """``reflects``: the units of each source, or the csn, whose view it is; None if there is none."""

    version: int
    rows: str
    reflects: str | None


@dataclass(frozen=True, slots=True)
class HistoryJudged(Result):
    """How consistent a view was. ``so_far``: it has not come to rest. ``undecided``: there were too many states to try,
    so it may be better. ``breaks`` is the lowest level that it does not reach, ``reason`` why, with the rows that the
    state nearest to the version has more and less."""

    name: str
    level: str
    so_far: bool
    undecided: bool
    versions: tuple[JudgedVersion, ...]
    breaks: str | None = None
    reason: str | None = None
    missing: str | None = None
    surplus: str | None = None


@dataclass(frozen=True, slots=True)
class ExperimentRun(Result):
    """What happened, line by line; ``judged`` where a view was published."""

    name: str
    title: str
    paper: str
    lines: tuple[str, ...]
    judged: HistoryJudged | None


@dataclass(frozen=True, slots=True)
class FilesWritten(Result):
    folder: str
    files: tuple[str, ...]
