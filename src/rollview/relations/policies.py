"""When views are propagated and applied: what they say themselves, else what the project says.

Law: a view that is propagated in commits reads tables, and views that are propagated in commits. So a commit finds all
that such a view reads complete up to itself, and no view passes what it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.core.states import Policy, ViewState
from rollview.errors import UsageError

POLICY = "rollview.policy"
"""A view's property."""


@dataclass(frozen=True, slots=True)
class Policies:
    """What the project says of views that say nothing themselves: by name, by the tables that they rest on, or for all.
    Names are folded."""

    default: Policy = Policy.DPDA
    views: Mapping[str, Policy] = field(default_factory=dict)
    over: tuple[tuple[frozenset[str], Policy], ...] = ()

    def of(self, snapshot: Snapshot, view: Relation) -> Policy:
        properties = view.definition.properties if view.definition is not None else {}
        return self.of_new(snapshot, view.name, properties, view.depends_on)

    def of_new(self, snapshot: Snapshot, name: str, properties: Mapping[str, str], depends_on: Iterable[str]) -> Policy:
        """Of a view that would have these properties and read these relations."""
        if POLICY in properties:
            return parse_policy(properties[POLICY])
        return self.views.get(name.lower()) or self._by_tables(snapshot, map(snapshot.get, depends_on))

    def _by_tables(self, snapshot: Snapshot, reads: Iterable[Relation]) -> Policy:
        """Of views that rest on no other tables than these. What such a view reads rests on no others either, so it has
        the same policy."""
        if not self.over:
            return self.default
        tables = frozenset(name.lower() for lower in reads for name in snapshot.tables_of(lower))
        return next((policy for among, policy in self.over if tables <= among), self.default)


def parse_policy(text: str) -> Policy:
    try:
        return Policy(text.lower())
    except ValueError:
        hint = "Choose snapshot, immediate, ipda or dpda."
        raise UsageError(f"There is no policy '{text}'.", hint=hint) from None


def check_reads(snapshot: Snapshot, policies: Policies, name: str, policy: Policy, depends_on: Iterable[str]) -> None:
    """Refuse a view in commits that reads one that is not, with what would make it legal."""
    for lower in map(snapshot.get, depends_on if policy.in_commits else ()):
        if lower.kind is RelationKind.VIEW and not (below := policies.of(snapshot, lower)).in_commits:
            raise UsageError(
                f"View '{name}' cannot be {policy}: it reads view '{lower.name}', which is {below} and comes later.",
                hint=f"First run: rollview view set {lower.name} {POLICY}={Policy.IPDA}",
                view=name,
                reads=lower.name,
            )


def check_legal(snapshot: Snapshot, policies: Policies, name: str, policy: Policy) -> None:
    """The same for a view that would have this policy, and for those that read it."""
    view = snapshot.view(name)
    check_reads(snapshot, policies, view.name, policy, view.depends_on)
    readers = [reader for reader in snapshot.readers(view.name) if policies.of(snapshot, reader).in_commits]
    if readers and not policy.in_commits:
        reader = readers[0]
        raise UsageError(
            f"View '{view.name}' cannot be {policy}: view '{reader.name}' reads it, and is propagated in commits.",
            hint=f"First run: rollview view set {reader.name} {POLICY}={Policy.DPDA}",
            view=view.name,
            read_by=reader.name,
        )


def is_stopped(snapshot: Snapshot, name: str) -> bool:
    """Whether the view cannot follow until somebody refreshes or replaces it."""
    view = snapshot.get(name)
    is_own = view.problem is not None or view.state is ViewState.SCHEMA_CHANGED
    return is_own or snapshot.waits_for(view) is not None
