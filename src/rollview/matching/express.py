"""Writing an expression over tables in terms of what a view stores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from rollview.matching.flat import NotStored
from rollview.matching.normal import Normal


@dataclass(frozen=True, slots=True)
class StoredValues:
    """Expressions that can be read off a view, by their normal form there; columns of other places stay as they are."""

    known: Mapping[exp.Expr, exp.Expr]
    normal: Normal
    free: frozenset[str]
    """Aliases of places that are read beside the view."""

    @classmethod
    def of(cls, held: Iterable[tuple[exp.Expr, exp.Column]], normal: Normal, free: frozenset[str]) -> StoredValues:
        return cls({normal.of(expression): place for expression, place in held}, normal, free)

    def write(
        self,
        expression: exp.Expr,
        calls: Collection[exp.Expr] = (),
        call: Callable[[exp.Expr], exp.Expr] | None = None,
    ) -> exp.Expr:
        """``calls``: aggregate calls in it, which ``call`` writes; without it they are written like all else."""
        if call is not None and expression in calls:
            return call(expression)
        found = self.known.get(self.normal.of(expression))
        if found is not None:
            return found.copy()
        if isinstance(expression, exp.Column):
            if expression.table in self.free:
                return expression.copy()
            raise NotStored(expression)
        parts = {name: self._part(value, calls, call) for name, value in expression.args.items()}
        return type(expression)(**parts)

    def _part(self, value: object, calls: Collection[exp.Expr], call: Callable[[exp.Expr], exp.Expr] | None) -> object:
        if isinstance(value, exp.Expr):
            return self.write(value, calls, call)
        return [self._part(one, calls, call) for one in value] if isinstance(value, list) else value
