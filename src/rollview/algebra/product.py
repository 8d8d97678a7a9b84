"""What a block is made of: a selection and projection of a product."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.operator import Input, Output, check_names_differ


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """π(σ(R1 × … × Rn)). Expressions name columns ``alias.column``."""

    sources: tuple[Input, ...]
    where: tuple[exp.Expr, ...]
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        check_names_differ(self.columns)
        check_names_differ(tuple(source.alias for source in self.sources))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.outputs)

    def output(self, name: str) -> exp.Expr:
        return next(output.expression for output in self.outputs if output.name == name)

    def source(self, alias: str) -> Input:
        return next(source for source in self.sources if source.alias == alias)
