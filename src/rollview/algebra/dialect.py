"""Spark's SQL as its author wrote it.

Law: what is parsed and written again means to Spark what the text meant. sqlglot knows many functions and spells them
as it understands them; here a function keeps its name and arguments, and only those that a rule looks into have a
form of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

_UNDERSTOOD = {
    "ARRAY": exp.Array,
    "AVG": exp.Avg,
    "COUNT": exp.Count,
    "MAX": exp.Max,
    "MEAN": exp.Avg,
    "MIN": exp.Min,
    "STD": exp.Stddev,
    "STDDEV": exp.Stddev,
    "STDDEV_POP": exp.StddevPop,
    "STDDEV_SAMP": exp.StddevSamp,
    "SUM": exp.Sum,
    "VARIANCE": exp.Variance,
    "VAR_POP": exp.VariancePop,
    "VAR_SAMP": exp.Variance,
}
"""Aggregates that have a rule of their own, and ARRAY, because a bracket may follow it."""

_SYNTAX = {"CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "SUBSTR", "TRIM", "TRY_CAST"}
"""Calls whose arguments are not a plain list."""

_WORDS = {"CASE", "IF", "TRANSFORM"}
"""Forms that begin with a word of their own."""

_HINTS = {
    "BROADCAST",
    "BROADCASTJOIN",
    "MAPJOIN",
    "MERGE",
    "MERGEJOIN",
    "SHUFFLEMERGE",
    "SHUFFLE_HASH",
    "SHUFFLE_REPLICATE_NL",
}


_TAKE_A_UNIT = {"DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF", "TIMESTAMPADD", "TIMESTAMPDIFF"}


def _with_unit(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """The first of three arguments is a word such as MONTH, not a column."""

    def build(arguments: list[exp.Expr]) -> exp.Expr:
        first, *rest = arguments
        unit = exp.var(first.name) if len(arguments) == 3 and isinstance(first, exp.Column) else first
        return exp.Anonymous(this=name, expressions=[unit, *rest])

    return build


class VerbatimSpark(Spark):
    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            **{name: kind.from_arg_list for name, kind in _UNDERSTOOD.items()},
            **{name: _with_unit(name) for name in _TAKE_A_UNIT},
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            name: parse for name, parse in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if name in _WORDS
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name in _SYNTAX | _HINTS
        }

        def _parse_function_call(self, *arguments: Any, **options: Any) -> exp.Expr | None:
            return self._placed(super()._parse_function_call, *arguments, **options)

        def _parse_placeholder(self) -> exp.Expr | None:
            return self._placed(super()._parse_placeholder)

        def _placed(self, parse: Callable[..., exp.Expr | None], *arguments: Any, **options: Any) -> exp.Expr | None:
            """Words without arguments remember their place in the text too."""
            token = self._curr
            parsed = parse(*arguments, **options)
            if parsed is not None and "line" not in parsed.meta:
                parsed.update_positions(token)
            return parsed

    class Tokenizer(Spark.Tokenizer):
        # Since Spark 4, a quote that is doubled inside a string stands for itself.
        STRING_ESCAPES: ClassVar[list[str]] = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']

    class Generator(SparkGenerator):
        TYPE_MAPPING: ClassVar[dict[exp.DType, str]] = {**SparkGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME"}
        # A subquery's own WITH stays where it is: moved up, its names would catch what they did not mean.
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
