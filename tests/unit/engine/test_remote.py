"""Spark elsewhere: what is said before anything is started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from rollview.engine import java, session
from rollview.errors import EnvironmentFault, UsageError

FOUND = java.Java(Path("/j/bin/java"), 17, "openjdk 17", "PATH")


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_server_that_does_not_answer_is_named_without_its_token(closed_port: int) -> None:
    with pytest.raises(
        EnvironmentFault, match=rf"No Spark Connect server answers at 127\.0\.0\.1:{closed_port}"
    ) as told:
        session.start({"remote": f"sc://127.0.0.1:{closed_port}/;token=hidden"})
    assert "hidden" not in f"{told.value.message} {told.value.hint}"


def test_the_environment_names_a_server_where_nothing_else_does(
    closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{closed_port}")
    with pytest.raises(EnvironmentFault, match="No Spark Connect server"):
        session.start({"spark.sql.shuffle.partitions": "3"})


@pytest.mark.parametrize("address", ["local", "http://127.0.0.1", "sc://"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="begins with sc://"):
        session.start({"spark.remote": address})


def test_executors_elsewhere_are_not_told_a_loopback_address() -> None:
    here, there = session.plan_conf(FOUND, {}), session.plan_conf(FOUND, {"spark.master": "spark://head:7077"})
    assert here["spark.driver.host"] == here["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.host" not in there
    assert "spark.driver.bindAddress" not in there
    assert there["spark.master"] == "spark://head:7077"
    assert session.is_local({"spark.master": "local[2]"})
    assert not session.is_local({"spark.master": "spark://head:7077"})


def test_a_clusters_size_is_not_guessed_from_this_machine() -> None:
    assert "spark.sql.shuffle.partitions" in session.plan_conf(FOUND, {"spark.master": "local[4]"})
    assert "spark.sql.shuffle.partitions" not in session.plan_conf(FOUND, {"spark.master": "yarn"})
