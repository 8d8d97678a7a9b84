"""Spark's SQL as its author wrote it.

Law: what is parsed and written again means to Spark what the text meant. sqlglot knows many functions and spells them
as it understands them; here a function keeps its name and arguments, and only those that a rule looks into have a
form of their own.
"""

from __future__ import annotations

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

_SYNTAX = {"CAST", "EXTRACT", "LISTAGG", "OVERLAY", "POSITION", "STRING_AGG", "SUBSTRING", "SUBSTR", "TRIM", "TRY_CAST"}
"""Calls whose arguments are not a plain list."""

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


class VerbatimSpark(Spark):
    class Parser(SparkParser):
        FUNCTIONS = {name: kind.from_arg_list for name, kind in _UNDERSTOOD.items()}
        FUNCTION_PARSERS = {
            name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name in _SYNTAX | _HINTS
        }

    class Generator(SparkGenerator):
        # A subquery's own WITH stays where it is: moved up, its names would catch what they did not mean.
        EXPRESSIONS_WITHOUT_NESTED_CTES = set()
