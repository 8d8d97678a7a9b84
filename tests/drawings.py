"""What a view's recorded steps say that they joined: counted by their signs, each combination of rows once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from xml.etree import ElementTree

from rollview.catalog import Part
from rollview.core.interval import Interval
from rollview.lab.steps import joined_by, steps_of
from rollview.relations.joined import JoinedQuery
from rollview.warehouse import Warehouse


def counted(queries: Iterable[JoinedQuery], point: Sequence[int]) -> int:
    """How often the queries have counted the join of rows that came at these csns."""
    return sum(
        one.sign
        for one in queries
        if all(
            csn in part if isinstance(part, Interval) else csn <= part
            for csn, part in zip(point, one.parts, strict=True)
        )
    )


def check_drawing(warehouse: Warehouse, name: str) -> None:
    """The rectangles tile the square up to the mark; the picture is the same each time."""
    view = warehouse.snapshot().get(name)
    steps = steps_of(warehouse.catalog, name)
    queries = [query for step in steps for query in joined_by(step, view.depends_on).queries]
    begin, mark = steps[0].interval.through, view.pins[Part.DELTA].through
    assert begin < mark
    for point in product(range(begin, mark + 1), repeat=len(view.depends_on)):
        assert counted(queries, point) == 1, (point, queries)
    drawn = warehouse.draw(name)
    assert drawn == warehouse.draw(name)
    assert len(list(ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}rect"))) == len(queries) + 2
