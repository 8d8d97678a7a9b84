"""How projects, maintenance and recovery read as text."""

from __future__ import annotations

from pathlib import Path

from rollview import results
from rollview.cli.render.dispatch import renders
from rollview.cli.render.words import counted, size_of, time_of
from rollview.cli.text import TextOutput
from rollview.project import ProjectStarted


@renders(ProjectStarted)
def _(answer: ProjectStarted, to: TextOutput) -> None:
    folder, file, warehouse = (_near(path) for path in (answer.folder, answer.file, answer.warehouse))
    to.say(f"Project in {folder}: settings in {file}, data in {warehouse}.")


@renders(results.CatalogRecovery)
def _(answer: results.CatalogRecovery, to: TextOutput) -> None:
    to.say(f"Catalog: warehouse {answer.catalog_id}, {counted(answer.catalog_steps, 'step')}, csn {answer.csn}.")
    to.say(f"Data:    warehouse {answer.data_id or '(no id)'}, {counted(answer.data_steps, 'step')}.")
    if answer.accepted:
        to.say(f"The warehouse goes on from csn {answer.csn} at {time_of(answer.time)}, under a new id.")
    elif answer.fits:
        to.say("They belong together; there is nothing to recover.")
    else:
        to.say("They do not fit, so every other command refuses them.", style="red")
    if answer.accepted_time is not None:
        to.say(f"The clock is taken to be right: {time_of(answer.accepted_time)}.")
    if answer.unreadable:
        to.say(f"Files are gone that the catalog names, so these cannot be read: {', '.join(answer.unreadable)}.")
    if answer.unknown_folders and (answer.accepted or not answer.fits):
        to.say(f"The catalog does not know {counted(len(answer.unknown_folders), 'folder')} in the data; they stay:")
        for folder in answer.unknown_folders:
            to.say(f"  {folder}")


@renders(results.Maintained)
def _(answer: results.Maintained, to: TextOutput) -> None:
    if not answer.actions:
        to.say(f"Nothing to save at csn {answer.csn}.")
        return
    rows = [
        (
            a.relation or ("(catalog)" if a.action == "forget" else "(gone)"),
            a.part or "",
            a.action,
            str(a.interval or ""),
            a.files,
            size_of(a.bytes),
            a.reason,
        )
        for a in answer.actions
    ]
    to.table(("relation", "part", "action", "interval", "files", "saves", "why"), rows, ("files", "saves"))
    if answer.explained:
        to.note("Nothing was changed.")


def _near(path: str) -> str:
    """As a user who stands here would write it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
