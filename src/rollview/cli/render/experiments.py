"""How experiments and judged histories read as text."""

from __future__ import annotations

from rollview import results
from rollview.cli.render.dispatch import render, renders
from rollview.cli.render.words import counted, values
from rollview.cli.text import TextOutput


@renders(results.ExperimentList)
def _(answer: results.ExperimentList, to: TextOutput) -> None:
    to.table(("experiment", "what", "from"), values(answer.experiments, "name", "title", "paper"))


@renders(results.ExperimentRun)
def _(answer: results.ExperimentRun, to: TextOutput) -> None:
    to.say(f"{answer.title} ({answer.paper})\n")
    for line in answer.lines:
        to.say(line)
    if answer.judged is not None:
        to.say("")
        render(answer.judged, to)


@renders(results.HistoryJudged)
def _(answer: results.HistoryJudged, to: TextOutput) -> None:
    level = f"at least {answer.level}" if answer.undecided else answer.level
    to.say(f"'{answer.name}' is {level}{' so far' if answer.so_far else ''}.")
    rows = [(one.version, one.rows, one.reflects or "–") for one in answer.versions]
    to.table(("version", "rows", "reflects"), rows, ("version",))
    if answer.undecided:
        to.note("There are more states than are searched: give versions a csn, or units that they go through.")
    if answer.reason is not None:
        to.say(f"Not {answer.breaks}: {answer.reason}.")
        for what, some in (("missing", answer.missing), ("too many", answer.surplus)):
            if some:
                to.say(f"  {what}: {some}")


@renders(results.FilesWritten)
def _(answer: results.FilesWritten, to: TextOutput) -> None:
    to.say(f"Written into {answer.folder}: {counted(len(answer.files), 'file')}")
    for name in answer.files:
        to.say(f"  {name}")
