"""Settings of a project, changed a little: a named state, or no wrong row."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from rollview.errors import RollviewError, UsageError
from rollview.project import FILE, load_project
from tests.property.foreign import INPUTS, chances, changed, parts

YAML = b"""version: 1
warehouse: .rollview
catalog: env:CATALOG
retention: {default: 30 days, orders: 90 days}
schedule: {default: every 10 seconds, bank: continuous}
sources:
  bank:
    kind: postgres
    address: env:BANK
    tables: [public.account, {table: note, columns: [text], types: {text: string}}]
    options: {log_alarm: 5 GB, timeout: 30 seconds}
spark: {spark.driver.memory: 8g, spark.ui.enabled: false}
"""


@parts("yaml")
def test_settings(part: int, tmp_path: Path) -> None:
    for chance in chances("yaml", part):
        (tmp_path / FILE).write_bytes(changed(chance, YAML))
        with suppress(RollviewError):
            project = load_project(tmp_path)
            for name in project.config.sources or ():
                project.source(name)


@pytest.mark.parametrize("text", ["a: 2001-99-99", "[" * 5_000, "a: " + "7" * 5_000, "!!int x"])
def test_settings_that_python_cannot_hold_are_told(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UsageError):
        load_project(tmp_path)


def test_there_are_a_hundred_thousand_inputs_in_all() -> None:
    assert sum(INPUTS.values()) == 100_000
