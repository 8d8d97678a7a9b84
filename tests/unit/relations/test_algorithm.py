"""Which algorithm keeps a view, and what it needs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rollview.errors import UsageError
from rollview.relations.algorithm import NAMES, algorithm_of, max_rows, needs_keys, publish_within


def test_auto_is_sweep() -> None:
    assert algorithm_of({}) == "sweep"
    assert algorithm_of({"rollview.algorithm": "auto"}) == "sweep"
    assert algorithm_of({"rollview.algorithm": "c-tstrobe"}) == "c-tstrobe"


@pytest.mark.parametrize("name", ["conventional", "storbe", ""])
def test_what_keeps_no_view_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="There is no algorithm"):
        algorithm_of({"rollview.algorithm": name})


def test_only_who_waits_for_quiet_sources_can_wait_too_long() -> None:
    told = {"rollview.publish_within": "5 minutes"}
    assert publish_within({"rollview.algorithm": "strobe", **told}) == timedelta(minutes=5)
    assert publish_within({"rollview.algorithm": "strobe"}) is None
    with pytest.raises(UsageError, match="wait for quiet sources"):
        publish_within({"rollview.algorithm": "c-strobe", **told})
    with pytest.raises(UsageError, match="not a duration"):
        publish_within({"rollview.algorithm": "strobe", "rollview.publish_within": "soon"})


def test_keys_are_needed_by_strobe_and_by_who_may_have_to_hurry() -> None:
    keyed = {name for name in NAMES if needs_keys({"rollview.algorithm": name})}
    assert keyed == {"strobe", "t-strobe", "g-strobe", "c-strobe", "c-tstrobe"}
    assert needs_keys({"rollview.algorithm": "eca", "rollview.publish_within": "1 minute"})


def test_only_propagation_queries_have_a_number_of_rows() -> None:
    told = {"rollview.max_rows": "500"}
    assert max_rows({"rollview.algorithm": "rolling", **told}) == 500
    assert max_rows({"rollview.algorithm": "propagate"}) == 100_000
    assert max_rows({"rollview.propagate": "a manual, b manual", **told}, 7) == 500
    assert max_rows({"rollview.propagate": "a manual, b manual"}, 7) == 7
    with pytest.raises(UsageError, match="table by table"):
        max_rows({"rollview.propagate": "continuous", **told})
    with pytest.raises(UsageError, match="kept by propagation queries"):
        max_rows(told)
    for wrong in ("0", "many", "-5"):
        with pytest.raises(UsageError, match="is a number of rows"):
            max_rows({"rollview.algorithm": "rolling", "rollview.max_rows": wrong})
