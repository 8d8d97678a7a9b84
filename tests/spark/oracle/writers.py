"""A random transaction, told to a warehouse (as DataFrames or as SQL) and to the model alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from tests.property.histories import Row, random_transaction, random_value
from tests.spark.oracle.model import Model, State, frame

from rollview.algebra.resolve import Known
from rollview.warehouse import Warehouse

Keep = Callable[[Row], bool]


def create_tables(warehouse: Warehouse, tables: tuple[Known, ...]) -> None:
    for table in tables:
        keys = [f"PRIMARY KEY ({', '.join(table.constraints.primary_key)})"] if table.constraints.primary_key else []
        keys += [f"UNIQUE ({', '.join(key)})" for key in table.constraints.unique]
        keys += [
            f"FOREIGN KEY ({', '.join(key.columns)}) REFERENCES {key.table} ({', '.join(key.referenced)})"
            for key in table.constraints.foreign_keys
        ]
        not_null = table.constraints.not_null
        columns = [f"{c.name} {c.type}{' NOT NULL' if c.name in not_null else ''}" for c in table.schema]
        warehouse.sql(f"CREATE TABLE {table.name} ({', '.join(columns + keys)})")


def write_transaction(random: Random, warehouse: Warehouse, model: Model) -> None:
    keyed = bool(model.tables[0].constraints.primary_key)
    if keyed or random.random() < 0.6:
        _write_frames(random, warehouse, model)
    else:
        _write_statements(random, warehouse, model)
    assert warehouse.snapshot().moment.csn == model.csn


def _write_frames(random: Random, warehouse: Warehouse, model: Model) -> None:
    changes = random_transaction(random, model.tables, model.states[-1])
    by_name = {table.name: table for table in model.tables}
    with warehouse.transaction() as transaction:
        for name, rows in changes.items():
            gone = [row for row, count in rows if count < 0]
            come = [row for row, count in rows if count > 0]
            if gone:
                transaction.delete(name, frame(warehouse.spark, by_name[name], gone))
            if come:
                transaction.insert(name, frame(warehouse.spark, by_name[name], come))
    model.commit(changes)


def _write_statements(random: Random, warehouse: Warehouse, model: Model) -> None:
    after = {name: Counter(rows) for name, rows in model.states[-1].items()}
    statements = [_statement(random, random.choice(model.tables), after) for _ in range(random.randint(1, 3))]
    warehouse.sql(*statements)
    model.become(after)


def _statement(random: Random, table: Known, after: State) -> str:
    condition, holds = _condition(random, table)
    place, column = random.choice([(i, c.name) for i, c in enumerate(table.schema) if c.type == "int"])
    hit = [row for row in after[table.name].elements() if holds(row)]
    kind = random.choice(["insert", "insert", "copy", "delete", "update"])
    if kind == "insert":
        fresh = [tuple(random_value(random, c.type) for c in table.schema) for _ in range(random.randint(1, 3))]
        after[table.name].update(fresh)
        return f"INSERT INTO {table.name} VALUES {', '.join(_tuple(table, row) for row in fresh)}"
    if kind == "copy":
        after[table.name].update(hit)
        return f"INSERT INTO {table.name} SELECT * FROM {table.name} WHERE {condition}"
    after[table.name].subtract(hit)
    if kind == "delete":
        return f"DELETE FROM {table.name} WHERE {condition}"
    value = random_value(random, "int")
    after[table.name].update((*row[:place], value, *row[place + 1 :]) for row in hit)
    return f"UPDATE {table.name} SET {column} = {'NULL' if value is None else value} WHERE {condition}"


def _condition(random: Random, table: Known) -> tuple[str, Keep]:
    place, column = random.choice([(i, c.name) for i, c in enumerate(table.schema) if c.type == "int"])
    value = random_value(random, "int")
    if value is None:
        return f"{column} IS NULL", lambda row: row[place] is None
    return f"{column} = {value}", lambda row: row[place] == value


def _tuple(table: Known, row: Row) -> str:
    return f"({', '.join(_literal(value, c.type) for value, c in zip(row, table.schema, strict=True))})"


def _literal(value: Any, type_: str) -> str:
    return f"CAST({'NULL' if value is None else repr(str(value))} AS {type_})"
