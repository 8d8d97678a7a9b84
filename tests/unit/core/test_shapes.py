"""What is read as settings without a validator, the validator reads the same."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from rollview.core.shapes import Misfit, shaped
from rollview.project import Config
from rollview.sources.settings import SourceSettings

JUDGE = TypeAdapter(with_config(ConfigDict(extra="forbid"))(Config))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.just(1.5), st.sampled_from(["a", "1", "true", ""]))
WORDS = st.sampled_from(["table", "name", "key", "columns", "copy", "rows", "of", "by", "extent", "policy", "tables"])
TABLES = st.dictionaries(WORDS, st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.sampled_from(["none", "equal"])))
SOURCES = st.fixed_dictionaries(
    {"kind": st.just("postgres"), "address": SCALARS, "tables": st.lists(st.one_of(SCALARS, TABLES), max_size=3)},
    optional={
        "options": st.dictionaries(st.just("slot"), SCALARS),
        "copy": st.sampled_from(["all", "none", "some", 1]),
    },
)
VALUES = st.one_of(
    SCALARS, st.dictionaries(st.sampled_from(["default", "over", 1]), SCALARS), st.lists(TABLES, max_size=2), TABLES
)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "version": st.sampled_from([1, 1, 1, 1, True, "1", 2]),
        "sources": st.one_of(SCALARS, st.dictionaries(st.just("bank"), SOURCES)),
        **dict.fromkeys(("warehouse", "catalog", "spark", "retention", "policy", "order", "parallel"), VALUES),
        **dict.fromkeys(("substitutes", "schedule", "delay", "strange"), VALUES),
    },
)


@given(FILES)
def test_what_fits_reads_as_the_validator_reads_it(data: dict[str, Any]) -> None:
    try:
        read = shaped(Config, data)
    except Misfit:
        return
    judged = JUDGE.validate_python(data)
    assert asdict(read) == asdict(judged)
    assert repr(read) == repr(judged)


@given(st.dictionaries(st.sampled_from(["bank", "shop"]), SOURCES))
def test_what_the_validator_refuses_does_not_fit(sources: dict[str, Any]) -> None:
    data = {"version": 1, "sources": sources}
    try:
        JUDGE.validate_python(data)
    except ValidationError:
        with pytest.raises(Misfit):
            shaped(Config, data)


def test_settings_of_every_kind_fit() -> None:
    data = {
        "version": 1,
        "catalog": "env:CATALOG",
        "spark": {"spark.driver.memory": "8g", "spark.sql.shuffle.partitions": 4, "spark.ui.enabled": False},
        "retention": {"default": "30 days"},
        "policy": {"default": "dpda", "over": [{"tables": ["t"], "policy": "ipda"}]},
        "order": "commit_time",
        "parallel": 4,
        "substitutes": [{"of": "a", "by": "b", "columns": {"x": "y"}, "extent": "subset"}],
        "sources": {
            "bank": {
                "kind": "postgres",
                "address": "env:BANK",
                "tables": ["public.accounts", {"table": "public.owners", "columns": ["id"], "copy": "all"}],
                "options": {"slot": "x", "batch": 10},
                "global_transactions": {"table": "public.accounts", "id": "txn", "sources": ["bank"]},
            }
        },
    }
    config = shaped(Config, data)
    assert repr(config) == repr(JUDGE.validate_python(data))
    assert isinstance((config.sources or {})["bank"].settings(), SourceSettings)
