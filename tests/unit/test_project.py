"""rollview.yaml: where it is found, what it may say, and that secrets stay out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollview.errors import NotFound, UsageError
from rollview.project import find_project, load_project, resolve


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
        ("version: 1\nware: x\n", "ware"),
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
