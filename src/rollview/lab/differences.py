"""Where what is measured here differs from what the papers print, each with the experiment that shows it."""

from __future__ import annotations

DIFFERENCES: tuple[tuple[str, str], ...] = (
    (
        "eca-at-once",
        "ECA's paper does not say when answers are added; added at once, readers see states that never were.",
    ),
    ("held-parts", "T-Strobe with the paper's holding queue is not weak but convergent: it shows rows of no state."),
    ("overtaken-part", "A held part that later updates of its source overtake makes the view wrong for good."),
    ("two-channels", "Answers and updates on two channels: convergent, as the paper says; strong if answers are held."),
    ("strobe-7", "C-Strobe is complete only if rows are compared whole and Δ has the columns that are not shown."),
    ("curves", "The bounds K^(n−2) and (n−1)! of C-Strobe count the deepest level of compensation only."),
    ("curves", "Grouped by table, few updates cost more queries than one by one: both orders of two tables are asked."),
    ("rolling-printed", "RollingPropagate as printed is wrong from three tables on; rolling-right is right."),
    ("rolling", "From three tables on, rolling saves only queries over empty intervals, unless boxes are merged."),
    ("map", "ECA-Key is missing: none of the papers that we have gives its rules."),
)


def differences_page() -> str:
    lines = [f"* `{name}`: {what}" for name, what in DIFFERENCES]
    return "\n".join(["## Where this differs from the papers\n", *lines]) + "\n"
