"""How subscribers read as text."""

from __future__ import annotations

from rollview import results
from rollview.cli import answers
from rollview.cli.render.dispatch import render, renders
from rollview.cli.render.words import counted, time_of
from rollview.cli.text import TextOutput


@renders(results.SubscriberStatus)
def _(answer: results.SubscriberStatus, to: TextOutput) -> None:
    facts = {"subscriber": answer.name, "view": answer.view, "to": answer.to or "who pulls"}
    facts |= {"position": str(answer.position), "behind": counted(answer.behind, "csn"), "state": answer.state}
    facts |= {"moved": time_of(answer.moved) if answer.moved else "never", "problem": answer.problem or "none"}
    to.facts(facts)


@renders(answers.SubscriberList)
def _(answer: answers.SubscriberList, to: TextOutput) -> None:
    if not answer.subscribers:
        to.say("No subscribers yet.")
        return
    rows = [
        (one.name, one.view, one.position, one.behind, one.to or "who pulls", one.state, one.problem or "")
        for one in answer.subscribers
    ]
    to.table(("subscriber", "view", "position", "behind", "to", "state", "problem"), rows, ("position", "behind"))


@renders(answers.Pulled)
def _(answer: answers.Pulled, to: TextOutput) -> None:
    if answer.rows is None:
        to.note(f"Nothing changed in view '{answer.view}' after csn {answer.after}.")
        return
    render(answer.rows, to)
    what = f"All rows of view '{answer.view}' at" if answer.full else f"Changes of view '{answer.view}' through"
    full = " --full" if answer.full else ""
    ack = f"rollview subscriber ack {answer.subscriber} {answer.through}{full}"
    to.note(f"{what} csn {answer.through}. When they are stored: {ack}")


@renders(results.Delivered)
def _(answer: results.Delivered, to: TextOutput) -> None:
    if not answer.subscribers:
        to.say("No subscriber has an address.")
        return
    headings = ("subscriber", "position", "batches", "rows", "problem")
    rows = [(one.name, one.position, one.batches, one.rows, one.problem or "") for one in answer.subscribers]
    to.table(headings, rows, ("position", "batches", "rows"))


@renders(results.Acknowledged)
def _(answer: results.Acknowledged, to: TextOutput) -> None:
    verb = "is now" if answer.moved else "stays"
    to.say(f"Subscriber '{answer.name}' {verb} at csn {answer.position}.")
