"""What a view can do without, and which rows its author takes for others: two of its properties.

``rollview.dispensable``: ``columns``, ``joins``, ``conditions`` for all of a kind, or one by one, as in ``column phone,
join region, condition on active``. ``rollview.extent``: ``equal``, ``subset``, ``superset`` or ``any``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rollview.catalog import Relation
from rollview.core.states import Extent
from rollview.errors import UsageError

DISPENSABLE, EXTENT = "rollview.dispensable", "rollview.extent"

_ALL = {"columns": "column", "joins": "join", "conditions": "condition"}
_ONE = re.compile(r"(?P<kind>column|join|condition)\s+(?:on\s+)?(?P<name>`[^`]+`|\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Dispensable:
    """By kind: names, folded; None for all."""

    names: Mapping[str, frozenset[str] | None] = field(default_factory=dict)

    def column(self, name: str) -> bool:
        return self._has("column", (name,))

    def join(self, names: Iterable[str]) -> bool:
        """By the table's name or by the one that the text gives it."""
        return self._has("join", names)

    def condition(self, columns: Iterable[str]) -> bool:
        """By a column that it names."""
        return self._has("condition", columns)

    def _has(self, kind: str, names: Iterable[str]) -> bool:
        known = self.names.get(kind, frozenset())
        return known is None or any(name.lower() in known for name in names)


def dispensable(properties: Mapping[str, str]) -> Dispensable:
    named: dict[str, set[str]] = {}
    all_: set[str] = set()
    for item in filter(None, (item.strip() for item in properties.get(DISPENSABLE, "").split(","))):
        found = _ONE.fullmatch(item)
        if item.lower() in _ALL:
            all_.add(_ALL[item.lower()])
        elif found is not None:
            named.setdefault(found["kind"].lower(), set()).add(found["name"].strip("`").lower())
        else:
            raise UsageError(
                f"'{DISPENSABLE}' cannot be understood at '{item}'.",
                hint="Write columns, joins or conditions, or one by one: column phone, join region, condition on age.",
            )
    kinds = {kind: None if kind in all_ else frozenset(named.get(kind, ())) for kind in _ALL.values()}
    return Dispensable(kinds)


def dispenses(view: Relation) -> bool:
    """Whether its author says that it can do without something."""
    return view.definition is not None and DISPENSABLE in view.definition.properties


def wanted_extent(properties: Mapping[str, str]) -> Extent:
    text = properties.get(EXTENT, Extent.EQUAL)
    try:
        return Extent(text.strip().lower())
    except ValueError:
        known = ", ".join(f"'{one}'" for one in Extent)
        raise UsageError(f"'{EXTENT}' cannot be '{text}'.", hint=f"Choose one of {known}.") from None
