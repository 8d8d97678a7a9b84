"""rollview.yaml: where it is found, what it may say, and that secrets stay out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollview.core.states import Policy
from rollview.errors import AlreadyExists, NotFound, UsageError
from rollview.project import find_project, load_project, resolve, start_project
from rollview.relations.policies import Policies
from rollview.sources import SourceSettings


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rollview.yaml").write_text(text)
    return folder


def test_the_nearest_file_upwards_counts(tmp_path: Path) -> None:
    write(tmp_path, "version: 1\n")
    inner = write(tmp_path / "a", "version: 1\nwarehouse: data\n")
    (inner / "b" / "c").mkdir(parents=True)
    project = find_project(inner / "b" / "c")
    assert project.root == inner / "data"


def test_no_file_anywhere_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no project in"):
        find_project(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 2\n", "version"),
        ("version: 1\nware: x\n", "ware: there is no such setting"),
        ("version: 1\ncatalog: [secret]\n", "catalog"),
        ("- 1\n", "dictionary"),
        ("a: [\n", "not valid YAML"),
        ("", "version"),
    ],
)
def test_a_wrong_file_names_the_place_and_no_value(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        load_project(write(tmp_path, text))
    assert "secret" not in caught.value.message


def test_references_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_CATALOG", "postgresql://u:p@h/d")
    (tmp_path / "secret").write_text("postgresql://u:q@h/d\n")
    assert resolve("env:SHOP_CATALOG", tmp_path) == "postgresql://u:p@h/d"
    assert resolve("file:secret", tmp_path) == "postgresql://u:q@h/d"
    assert resolve("sqlite:///x.db", tmp_path) == "sqlite:///x.db"


@pytest.mark.parametrize("text", ["env:NOT_THERE_AT_ALL", "file:not-there"])
def test_a_reference_to_nothing_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"rollview\.yaml refers to"):
        resolve(text, tmp_path)


def test_spark_settings_become_text(tmp_path: Path) -> None:
    project = load_project(write(tmp_path, "version: 1\nspark: {a: 8, b: true, c: x}\n"))
    assert project.spark_conf() == {"a": "8", "b": "true", "c": "x"}


SOURCES = """
version: 1
sources:
  bank:
    kind: postgres
    address: env:BANK_URL
    tables:
      - public.accounts
      - {table: public.note, name: notes, types: {amount: "DECIMAL(38,9)"}}
  drop:
    kind: files
    address: inbox
    tables: [{table: orders, format: csv, types: {id: bigint}, key: [id]}]
    options: {settle_seconds: 5}
"""


def test_sources_are_described(tmp_path: Path) -> None:
    project = load_project(write(tmp_path, SOURCES))
    bank, drop = project.source("bank"), project.source("drop")
    assert (bank.kind, bank.address, bank.remotes) == ("postgres", "env:BANK_URL", ("public.accounts", "public.note"))
    assert [table.relation for table in bank.tables] == ["accounts", "notes"]
    assert bank.tables[1].types == {"amount": "decimal(38,9)"}
    assert (drop.address, drop.options) == (str(tmp_path / "inbox"), {"settle_seconds": "5"})
    assert drop.tables[0].key == ("id",)
    with pytest.raises(NotFound, match="no source in the project 'other'"):
        project.source("other")


def test_what_is_copied_is_said_for_a_source_or_a_table(tmp_path: Path) -> None:
    tables = "[a, x=b, {table: c, copy: all}, {table: d, columns: [id], rows: id > 1}]"
    text = f"version: 1\nsources:\n  s: {{kind: sqlite, address: x, copy: needed, tables: {tables}}}\n"
    settings = load_project(write(tmp_path, text)).source("s")
    assert [table.relation for table in settings.tables if table.needed] == ["a", "x"]
    assert (settings.table("d").columns, settings.table("d").rows) == (("id",), "id > 1")
    assert SourceSettings.from_json(settings.to_json()) == settings
    (tmp_path / "views" / "more").mkdir(parents=True)
    (tmp_path / "views" / "more" / "v.sql").write_text("SELECT 1")
    assert load_project(tmp_path).declared() == ("SELECT 1",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("  s: {kind: sqlite, address: x, tables: [{table: t, copy: needed, rows: id > 1}]}", "and that views say"),
        ("  s: {kind: files, address: x, copy: needed, tables: [t]}", "all columns are captured"),
        ("  s: {kind: postgres, address: 'postgresql://u:secret@h/d', tables: [t]}", "password"),
        ("  s: {kind: sqlite, address: x, tables: []}", "no tables"),
        ("  s: {kind: sqlite, address: x, tables: [a.t, b.t]}", "Two tables"),
        ("  s: {kind: sqlite, address: x, tables: [t], hue: secret}", r"sources\.s\.hue: there is no such setting"),
        ("  s: {kind: sqlite, tables: [t]}", r"sources\.s\.address: it is not there"),
        ("  s: {kind: sqlite, address: x, tables: secret}", r"sources\.s\.tables: input should be a valid list"),
        ("  s: {kind: sqlite, address: x, tables: [t, {table: t, hue: secret}]}", r"sources\.s\.tables\.1\.hue: "),
    ],
)
def test_a_wrong_source_is_told_without_its_secret(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        load_project(write(tmp_path, f"version: 1\nsources:\n{line}\n")).source("s")
    assert "secret" not in caught.value.message


def test_a_clone_without_its_warehouse_gets_one(tmp_path: Path) -> None:
    folder = write(tmp_path, "version: 1\nwarehouse: data\n")
    start_project(folder)
    assert load_project(folder).root == folder / "data"
    load_project(folder).open().close()
    with pytest.raises(AlreadyExists):
        start_project(folder)


def test_policies_are_for_all_by_name_or_by_tables(tmp_path: Path) -> None:
    def told(text: str) -> Policies:
        (tmp_path / "rollview.yaml").write_text(f"version: 1\npolicy: {text}\n")
        return load_project(tmp_path).policies()

    assert told("ipda") == Policies(Policy.IPDA)
    by_tables = ((frozenset({"orders", "lines"}), Policy.IPDA),)
    both = told("{default: snapshot, Sales: immediate, over: [{tables: [Orders, lines], policy: ipda}]}")
    assert both == Policies(Policy.SNAPSHOT, {"sales": Policy.IMMEDIATE}, by_tables)
    for wrong in ("hourly", "{default: hourly}", "{over: ipda}", "{over: [{tables: [t], policy: hourly}]}"):
        with pytest.raises(UsageError):
            told(wrong)
