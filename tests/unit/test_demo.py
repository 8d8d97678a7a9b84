"""The demo's comparison is read in a terminal of 80 columns."""

from __future__ import annotations

from demo.story import compared
from rich.console import Console

from rollview.core.interval import Interval
from rollview.core.states import ViewMode
from rollview.results import Refreshed, ViewRefreshed


def test_the_table_of_the_demo_fits_80_columns() -> None:
    name = "large_sales_by_state"
    view = ViewRefreshed(name, Interval(0, 9), ViewMode.INCREMENTAL, "", 99_999, 9, 9, 99.99, 9, 9, 9, 9 << 20, {}, ())
    console = Console(width=200)
    with console.capture() as told:
        console.print(compared(Refreshed(9, (view,)), {name: 99}, {name: 99.99}))
    assert max(map(len, told.get().splitlines())) <= 80
