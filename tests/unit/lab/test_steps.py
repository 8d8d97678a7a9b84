"""A view's steps as a picture: a function of what they say that they joined."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.unit.propagate.world import World

from rollview.catalog import Step
from rollview.core.interval import Interval
from rollview.errors import RollviewError
from rollview.lab.steps import draw_view, frame_of
from rollview.relations.joined import JOINED, JoinedQueries, JoinedQuery

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 9)
    world.table("t")
    world.table("u")
    world.view("v", "SELECT t.k, u.x FROM t JOIN u ON t.k = u.k", reads=("t", "u"), mark=6)
    return world


def step(number: int, kind: Any, interval: Interval, *queries: JoinedQuery, more: int = 0) -> Step:
    profile = {JOINED: JoinedQueries(("t", "u"), queries, more).to_json()} if queries else {}
    return Step(number, "v", kind, interval, "done", NOON, NOON, "", (), profile)


def drawn(world: World, *steps: Step) -> str:
    catalog: Any = SimpleNamespace(steps=lambda name, limit, status: steps[::-1])
    return draw_view(catalog, world.snapshot, "V")


CREATED = step(1, "create", Interval(2, 2))
BOXES = (
    JoinedQuery(1, (Interval(2, 6), 2)),
    JoinedQuery(1, (6, Interval(2, 5))),
    JoinedQuery(1, (6, Interval(5, 6)), executed=False),
)


def texts(picture: str) -> list[str]:
    return [str(one.text) for one in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def boxes(picture: str) -> list[tuple[float, ...]]:
    """Those of queries, without the paper and the frame of what is complete."""
    found = list(ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}rect"))[1:-1]
    return [tuple(float(one.attrib[name]) for name in ("x", "y", "width", "height")) for one in found]


def test_each_query_is_a_rectangle_with_a_line_that_tells_it(world: World) -> None:
    picture = drawn(world, CREATED, step(2, "propagate", Interval(2, 6), *BOXES))
    said = texts(picture)
    assert "v: how changes of t and u came to it" in said
    assert [one for one in said if "⋈" in one] == [
        "1: + t at 2 ⋈ u at 2",
        "2: + t (2, 6] ⋈ u at 2",
        "3: + t at 6 ⋈ u (2, 5]",
        "4: + t at 6 ⋈ u (5, 6]: no changes",
    ]
    assert "complete up to 6" in said
    first, second, third, fourth = boxes(picture)
    assert second[1] < first[1] == pytest.approx(second[1] + second[3], abs=12)
    assert first[0] < third[0] < fourth[0]
    assert picture.count("stroke-dasharray") == 2 * 5 + 1
    assert picture == drawn(world, CREATED, step(7, "propagate", Interval(2, 6), *BOXES))


def test_what_counts_against_the_view_is_shaded(world: World) -> None:
    against = (JoinedQuery(1, (Interval(2, 6), 7)), JoinedQuery(-1, (Interval(2, 6), Interval(2, 7))))
    picture = drawn(world, CREATED, step(2, "propagate", Interval(2, 6), *against))
    assert picture.count('fill="#fed7d7"') == 1
    assert "3: − t (2, 6] ⋈ u (2, 7]" in texts(picture)


def test_only_steps_since_all_rows_were_computed_are_drawn(world: World) -> None:
    old = step(2, "propagate", Interval(2, 4), JoinedQuery(1, (Interval(2, 4), 2)))
    anew = step(3, "adapt", Interval(4, 5))
    later = step(4, "propagate", Interval(5, 6), JoinedQuery(1, (Interval(5, 6), 5)))
    said = texts(drawn(world, CREATED, old, anew, later))
    assert [one for one in said if ": +" in one] == ["1: + t at 5 ⋈ u at 5", "2: + t (5, 6] ⋈ u at 5"]
    whole = replace(step(5, "apply", Interval(5, 6)), profile={"mode": "whole"})
    assert [one for one in texts(drawn(world, CREATED, old, whole)) if ": +" in one] == ["1: + t at 6 ⋈ u at 6"]
    rolled = replace(whole, profile={})
    assert len(boxes(drawn(world, CREATED, old, rolled))) == 2


def test_a_step_that_does_not_say_made_the_difference(world: World) -> None:
    said = texts(drawn(world, CREATED, step(2, "propagate", Interval(2, 6))))
    assert [one for one in said if "⋈" in one] == [
        "1: + t at 2 ⋈ u at 2",
        "2: + t at 6 ⋈ u at 6",
        "3: − t at 2 ⋈ u at 2",
    ]


def test_a_view_of_one_table_is_a_column(world: World) -> None:
    world.view("w", "SELECT k, x FROM t", mark=6)
    one = JoinedQueries(("t",), (JoinedQuery(1, (Interval(2, 6),)),)).to_json()
    steps = (
        CREATED,
        Step(2, "w", "propagate", Interval(2, 6), "done", NOON, NOON, "", (), {JOINED: one}),
    )
    catalog: Any = SimpleNamespace(steps=lambda *_: steps[::-1])
    picture = draw_view(catalog, world.snapshot, "w")
    assert "2: + t (2, 6]" in texts(picture)
    assert not [said for said in texts(picture) if "→" in said]
    assert len(boxes(picture)) == 2


def test_of_many_steps_the_last_are_drawn_and_of_many_queries_it_says_how_many(world: World) -> None:
    many = [
        step(csn, "propagate", Interval(csn, csn + 1), JoinedQuery(1, (Interval(csn, csn + 1), csn)), more=3)
        for csn in range(2, 80)
    ]
    picture = drawn(world, CREATED, *many)
    assert "v: how changes of t and u came to it, the last 60 of 79 steps" in texts(picture)
    assert len(boxes(picture)) == 60
    assert sum("and 3 more" in one for one in texts(picture)) == 60


@pytest.mark.parametrize(("begin", "last"), [(0, 1), (5, 5), (0, 40), (1000, 61_000)])
def test_the_picture_is_of_bounded_size_and_names_few_csns(begin: int, last: int) -> None:
    frame = frame_of(begin, last)
    assert 0 < frame.side <= 560
    assert frame.begin < begin
    assert 1 <= len(frame.named) <= 11
    assert frame.named[0] == begin


def test_a_name_that_is_no_xml_is_drawn_all_the_same(world: World) -> None:
    world.relations["v"] = world.relations["V"] = replace(world.relations["v"], name="v<\x01")
    assert "v<\ufffd: how changes of t and u came to it" in texts(drawn(world, CREATED))


def test_what_is_no_view_is_refused(world: World) -> None:
    catalog: Any = SimpleNamespace(steps=lambda *_: ())
    with pytest.raises(RollviewError, match="t"):
        draw_view(catalog, world.snapshot, "t")
    world.relations["v"] = replace(world.relations["v"], depends_on=())
    with pytest.raises(RollviewError, match="reads no table"):
        draw_view(catalog, world.snapshot, "v")
