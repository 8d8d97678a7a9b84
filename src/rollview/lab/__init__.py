"""The lab: the algorithms on simulated sources, the papers' examples, and what can be measured of them.

Law: an experiment is a function of its seed; the same seed gives the same numbers and the same bytes of every picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.lab.catalogue import find_experiment, list_experiments
    from rollview.lab.contention import run_contention
    from rollview.lab.report import write_all, write_figures
    from rollview.lab.steps import draw_view
    from rollview.lab.verdicts import check_text

__all__ = [
    "check_text",
    "draw_view",
    "find_experiment",
    "list_experiments",
    "run_contention",
    "write_all",
    "write_figures",
]
__getattr__ = lazy_names(
    __name__,
    {
        "check_text": "rollview.lab.verdicts",
        "draw_view": "rollview.lab.steps",
        "run_contention": "rollview.lab.contention",
        **dict.fromkeys(("write_all", "write_figures"), "rollview.lab.report"),
        **dict.fromkeys(("find_experiment", "list_experiments"), "rollview.lab.catalogue"),
    },
)
