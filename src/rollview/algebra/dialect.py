"""Spark's SQL as its author wrote it.

Law: what is parsed and written again means to Spark what the text meant. sqlglot knows many functions and spells them
as it understands them; here a function keeps its name and arguments, and only those that a rule looks into have a
form of their own. It also lets operators bind as most engines do; here they bind as in Spark's grammar (``levels``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from rollview.algebra.levels import Plus, UnsignedShift, parenthesised
from rollview.algebra.words import remember, set_span

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


_COMPARISONS = {**SparkParser.EQUALITY, **SparkParser.COMPARISON}
_BITS = (
    (TokenType.AMP, exp.BitwiseAnd),
    (TokenType.CARET, exp.BitwiseXor),
    (TokenType.PIPE, exp.BitwiseOr),
)
"""Each binds more loosely than the one before it; all of them more loosely than shifts."""

_BY_COMMA = "rollview_by_comma"

_TAKE_A_UNIT = {"DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF", "TIMESTAMPADD", "TIMESTAMPDIFF"}


def _with_unit(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """The first of three arguments is a word such as MONTH, not a column."""

    def build(arguments: list[exp.Expr]) -> exp.Expr:
        first, *rest = arguments
        unit = exp.var(first.name) if len(arguments) == 3 and isinstance(first, exp.Column) else first
        return exp.Anonymous(this=name, expressions=[unit, *rest])

    return build


def _matches(kind: type[exp.Expr]) -> Callable[[Any, exp.Expr | None], exp.Expr | None]:
    """LIKE and its like: the pattern may be a comparison."""

    def parse(parser: Any, this: exp.Expr | None) -> exp.Expr | None:
        matched = parser.expression(kind(this=this, expression=parser._parse_comparison()))
        found: exp.Expr | None = parser._parse_escape(matched)
        return found

    return parse


class VerbatimSpark(Spark):
    class Parser(SparkParser):
        TERM: ClassVar[dict[TokenType, type[exp.Binary]]] = {
            TokenType.DASH: exp.Sub,
            TokenType.DPIPE: exp.DPipe,
            TokenType.PLUS: exp.Add,
        }
        RANGE_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr | None]]] = {
            **{kind: SparkParser.RANGE_PARSERS[kind] for kind in (TokenType.BETWEEN, TokenType.IN, TokenType.IS)},
            TokenType.ILIKE: _matches(exp.ILike),
            TokenType.LIKE: _matches(exp.Like),
            TokenType.RLIKE: _matches(exp.RegexpLike),
        }
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

        def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
            return self._parse_range()

        def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
            """A comparison, and the predicate behind it."""
            return super()._parse_range(this or self._parse_comparison(), parse_is=True)

        def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
            this = this or self._parse_bitwise()
            while self._match_set(_COMPARISONS):
                kind, comments = _COMPARISONS[self._prev.token_type], self._prev_comments
                this = self.expression(kind(this=this, expression=self._parse_bitwise()), comments=comments)
            return this

        def _parse_bitwise(self) -> exp.Expr | None:
            return self._parse_bits(len(_BITS))

        def _parse_bits(self, level: int) -> exp.Expr | None:
            """Level 0 are shifts; every other one of them binds more loosely than the one before it."""
            if level == 0:
                return self._parse_shift()
            sign, kind = _BITS[level - 1]
            this = self._parse_bits(level - 1)
            while self._match(sign):
                comments = self._prev_comments
                this = self.expression(kind(this=this, expression=self._parse_bits(level - 1)), comments=comments)
            return this

        def _parse_shift(self) -> exp.Expr | None:
            this = self._parse_term()
            while True:
                if self._match_pair(TokenType.LT, TokenType.LT):
                    this = self.expression(exp.BitwiseLeftShift(this=this, expression=self._parse_term()))
                elif self._match_pair(TokenType.GT, TokenType.GT):
                    kind = UnsignedShift if self._match(TokenType.GT) else exp.BitwiseRightShift
                    this = self.expression(kind(this=this, expression=self._parse_term()))
                else:
                    return this

        def _parse_unary(self) -> exp.Expr | None:
            """A number takes its own sign before anything else is done with it; + makes a number of a text."""
            if self._match_pair(TokenType.DASH, TokenType.NUMBER, advance=False):
                index = self._index
                self._advance()
                negative = exp.Neg(this=self._parse_primary())
                if self._curr and self._curr.token_type == TokenType.DCOLON:
                    return self._parse_collation(self._parse_column_ops(exp.Paren(this=negative)))
                self._retreat(index)
            if self._match(TokenType.PLUS):
                return self.expression(Plus(this=self._parse_unary()))
            if self._match_set(self.UNARY_PARSERS):
                signed: exp.Expr | None = self.UNARY_PARSERS[self._prev.token_type](self)
                return signed
            return self._parse_collation(self._parse_type())

        def build_cast(self, strict: bool, **kwargs: Any) -> exp.Expr:
            """Also of a number with a suffix. Digits before BD are counted: no sign may hide them."""
            match kwargs["this"]:
                case exp.Paren(this=exp.Neg(this=exp.Literal() as digits)) if self._prev.text.upper() == "BD":
                    kwargs["this"] = exp.Literal(this=f"-{digits.name}", is_string=False)
            return super().build_cast(strict, **kwargs)

        def _parse_collation(self, this: exp.Expr | None) -> exp.Expr | None:
            while this is not None and self._match(TokenType.COLLATE):
                collated = self.expression(exp.Collate(this=this, expression=self._parse_column_reference()))
                self._normalize_collate(collated)
                this = self._parse_column_ops(collated)
            return this

        def _parse_between(self, this: exp.Expr | None) -> exp.Between:
            low = self._parse_comparison()
            self._match(TokenType.AND)
            return self.expression(exp.Between(this=this, low=low, high=self._parse_comparison()))

        def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
            if distinct:
                return self._parse_comparison()
            return exp.var("UNKNOWN") if self._match_text_seq("UNKNOWN") else super()._parse_is_rhs()

        def _parse_join(self, *arguments: Any, **options: Any) -> exp.Join | None:
            by_comma = self._match(TokenType.COMMA, advance=False)
            join = super()._parse_join(*arguments, **options)
            if by_comma and join is not None:
                join.meta[_BY_COMMA] = True
            return join

        def _parse_update_assignment(self) -> exp.Expr | None:
            this = self._parse_bitwise()
            if self._match(TokenType.EQ):
                this = self.expression(exp.EQ(this=this, expression=self._parse_disjunction()))
            return this

        def _parse_alter(self) -> exp.Alter | exp.Command:
            """``ALTER MATERIALIZED VIEW`` has the form of ``ALTER VIEW``."""
            materialized = self._match_text_seq("MATERIALIZED")
            altered = super()._parse_alter()
            if materialized and isinstance(altered, exp.Alter):
                altered.set("kind", f"MATERIALIZED {altered.args['kind']}")
            return altered

        def _parse_statement(self) -> exp.Expr | None:
            return self._written(super()._parse_statement)

        def _parse_ddl_select(self) -> exp.Expr | None:
            return self._written(super()._parse_ddl_select)

        def _parse_disjunction(self) -> exp.Expr | None:
            return self._written(super()._parse_disjunction)

        def _written(self, parse: Callable[[], exp.Expr | None]) -> exp.Expr | None:
            """What it is parsed from is remembered."""
            first = self._curr
            parsed = parse()
            if parsed is not None and first and self._prev:
                remember(parsed, self.sql, first.start, self._prev.end + 1)
            return parsed

        def _parse_order(self, this: exp.Expr | None = None, skip_order_token: bool = False) -> exp.Expr | None:
            first = self._curr
            found = super()._parse_order(this, skip_order_token)
            if isinstance(found, exp.Order) and first and self._prev:
                set_span(found, first.start, self._prev.end + 1)
            return found

        def _parse_partition_and_order(self) -> tuple[list[exp.Expr], exp.Expr | None]:
            first = self._curr
            partition, order = super()._parse_partition_and_order()
            if order is not None and first and self._prev:
                set_span(order, first.start, self._prev.end + 1)
            return partition, order

        def _parse_limit(self, this: exp.Expr | None = None, *arguments: Any, **options: Any) -> exp.Expr | None:
            return self._limited(super()._parse_limit, this, *arguments, **options)

        def _parse_offset(self, this: exp.Expr | None = None) -> exp.Expr | None:
            return self._limited(super()._parse_offset, this)

        def _limited(self, parse: Callable[..., exp.Expr | None], *arguments: Any, **options: Any) -> exp.Expr | None:
            first = self._curr
            found = parse(*arguments, **options)
            if isinstance(found, exp.Limit | exp.Offset | exp.Fetch) and first and self._prev:
                set_span(found, first.start, self._prev.end + 1)
            return found

        def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
            """A call, and what may follow it: WITHIN GROUP, FILTER, OVER."""
            first, behind = self._begin_of_call(), self._prev.end + 1 if self._prev else 0
            found = super()._parse_window(this, alias)
            if this is not None and first is not None:
                set_span(this, first, behind)
                if found is not None and found is not this:
                    set_span(found, first, self._prev.end + 1)
            return found

        def _begin_of_call(self) -> int | None:
            """Where the call that ends here begins."""
            depth, index = 0, self._index - 1
            while index > 0:
                kind = self._tokens[index].token_type
                depth += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
                if depth == 0:
                    return int(self._tokens[index - 1 if kind == TokenType.L_PAREN else index].start)
                index -= 1
            return None

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
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **Spark.Tokenizer.KEYWORDS,
            "!<": TokenType.GTE,
            "!>": TokenType.LTE,
        }

    class Generator(SparkGenerator):
        TYPE_MAPPING: ClassVar[dict[exp.DType, str]] = {**SparkGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME"}
        TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
            **SparkGenerator.TRANSFORMS,
            exp.BitwiseLeftShift: lambda self, node: self.binary(node, "<<"),
            exp.BitwiseRightShift: lambda self, node: self.binary(node, ">>"),
            UnsignedShift: lambda self, node: self.binary(node, ">>>"),
            Plus: lambda self, node: f"+{self.sql(node, 'this')}",
        }
        # A subquery's own WITH stays where it is: moved up, its names would catch what they did not mean.
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()

        def join_sql(self, expression: exp.Join, join_op: str | None = None) -> str:
            """A comma stays one: Spark keeps the two apart, although they mean the same."""
            is_comma = expression._meta is not None and _BY_COMMA in expression.meta and not expression.args.get("on")
            return f", {self.sql(expression, 'this')}" if is_comma else super().join_sql(expression, join_op)

        def preprocess(self, expression: exp.Expr) -> exp.Expr:
            return parenthesised(super().preprocess(expression))
