"""Which room a statement belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.definition import altered, is_view_change, is_view_declaration, relation_name
from rollview.algebra.text import parse_statements, render
from rollview.algebra.unsafe import refuse_unsafe
from rollview.catalog import RelationKind
from rollview.errors import RollviewError, SqlError
from rollview.evolve.needs import refuse_missing
from rollview.publish.workplace import Workplace
from rollview.results import StatementResult
from rollview.routing import ask
from rollview.sql.synchronize import Synchronizer
from rollview.sql.views import create_view, drop_view, set_view
from rollview.tables import Transaction, alter_table, drop_read_table, is_alter, is_dml, run_ddl, table_to_drop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def run_statements(
    place: Workplace, texts: Sequence[str], *, allow_unsafe: bool = False
) -> tuple[StatementResult, ...]:
    """``allow_unsafe``: they may run code and read files outside; views never."""
    for text in texts if not allow_unsafe else ():
        refuse_unsafe(text)
    trees = [tree for text in texts for tree in parse_statements(text)]
    if not trees:
        raise SqlError("There is no statement in the text.")
    answers: list[StatementResult] = []
    for tree in _grouped(trees):
        with _telling(answers):
            _refuse_missing(place, tree if isinstance(tree, list) else [tree])
            if isinstance(tree, list):
                answers.extend(_changes(place, tree, allow_unsafe))
            else:
                answers.append(_statement(place, tree, allow_unsafe))
    return tuple(answers)


def drop_table(place: Workplace, name: str) -> None:
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    _statement(place, exp.Drop(tables=[table], kind="TABLE"))


@contextmanager
def transaction(place: Workplace, *, allow_unsafe: bool = False) -> Iterator[Transaction]:
    """Committed when the block ends without an error, unless the block did so itself."""
    place.recover()
    begun = Transaction(place.spark, place.data, place.catalog, place.following, allow_unsafe=allow_unsafe)
    try:
        yield begun
    except BaseException:
        begun.rollback()
        raise
    if begun.is_open:
        begun.commit()


def _grouped(trees: Sequence[exp.Expr]) -> Iterator[exp.Expr | list[exp.Expr]]:
    """Neighbouring changes together, everything else alone."""
    changes: list[exp.Expr] = []
    for tree in trees:
        if is_dml(tree):
            changes.append(tree)
            continue
        if changes:
            yield changes
            changes = []
        yield tree
    if changes:
        yield changes


def _refuse_missing(place: Workplace, trees: Sequence[exp.Expr]) -> None:
    for tree in trees:
        if not is_view_declaration(tree):
            refuse_missing(place.catalog, tree)


def _changes(place: Workplace, trees: list[exp.Expr], allow_unsafe: bool) -> list[StatementResult]:
    with transaction(place, allow_unsafe=allow_unsafe) as begun:
        answers = [begun.run(tree) for tree in trees]
    return [begun.committed_result(answer) for answer in answers]


def _statement(place: Workplace, tree: exp.Expr, allow_unsafe: bool = False) -> StatementResult:
    if is_view_declaration(tree):
        created = create_view(place, tree)
        return StatementResult("create view", render(tree), created.name, inserted=created.rows, csn=created.csn)
    if is_view_change(tree):
        change = altered(tree)
        done = set_view(place, change.name, change.properties)
        return StatementResult("alter view", render(tree), done.name, csn=place.snapshot().moment.csn)
    if isinstance(tree, exp.Query):
        return StatementResult("query", render(tree), rows=_rows(place, tree, allow_unsafe))
    if isinstance(tree, exp.Drop) and tree.kind in ("VIEW", "MATERIALIZED VIEW"):
        return _drop_view(place, tree)
    place.recover()
    if is_alter(tree):
        about = (lambda: place.spark, place.data, place.catalog, place.following)
        return alter_table(*about, tree, synchronizer(place))
    if isinstance(tree, exp.Drop) and tree.kind == "TABLE" and (read := _read_table(place, tree)) is not None:
        about = (lambda: place.spark, place.data, place.catalog, place.following)
        return StatementResult("drop table", render(tree), read, csn=drop_read_table(*about, read, synchronizer(place)))
    return run_ddl(place.spark, place.data, place.catalog, tree, lambda query: _rows(place, query, allow_unsafe))


def synchronizer(place: Workplace) -> Synchronizer:
    return Synchronizer(lambda: place.spark, place.substitutes, place.policies)


def _read_table(place: Workplace, tree: exp.Drop) -> str | None:
    """The one local table that is to be dropped, if a view reads it, or did."""
    snapshot = place.snapshot()
    table = snapshot.find(table_to_drop(tree))
    if table is None or table.kind is not RelationKind.TABLE or table.source is not None:
        return None
    return table.name if any(table.name in one.depends_ever for one in snapshot.relations.values()) else None


def _rows(place: Workplace, query: exp.Query, allow_unsafe: bool) -> DataFrame:
    rows = ask(place, query, allow_unsafe=allow_unsafe).rows
    assert rows is not None
    return rows


def _drop_view(place: Workplace, tree: exp.Drop) -> StatementResult:
    targets = tree.args.get("tables") or [tree.this]
    if len(targets) != 1:
        raise SqlError("DROP MATERIALIZED VIEW takes one view.")
    name = relation_name(targets[0], "view")
    if tree.args.get("exists") and place.snapshot().find(name) is None:
        return StatementResult("drop view", render(tree), name)
    drop_view(place, name)
    return StatementResult("drop view", render(tree), name, csn=place.snapshot().moment.csn)


@contextmanager
def _telling(answers: Sequence[StatementResult]) -> Iterator[None]:
    """An error inside says what was done before it and stays done."""
    try:
        yield
    except RollviewError as error:
        done = [f"{answer.kind} {answer.table}" for answer in answers if answer.csn is not None]
        if done:
            error.hint = " ".join(filter(None, (error.hint, f"Done before it, and stays: {', '.join(done)}.")))
            error.facts["done"] = done
        raise
