"""A column of PostgreSQL's texts as Arrow.

Law: where a column's own type says how its texts are spelled, Arrow's reading of them is that of ``values``; everything
else is read by that, text by text. What either refuses is not bent: the rows are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rollview.sources.postgres.values import decoder
from rollview.sources.sections import NotPlainError

_REFUSALS = (pa.ArrowException, TypeError, ValueError, ArithmeticError, KeyError)

Read = Callable[[pa.Array, pa.DataType], pa.Array]


def read_texts(raw: pa.Array, type_: str, oid: int, target: pa.DataType) -> pa.Array:
    """``oid``: the column's type at the source, ``type_`` and ``target``: at ours."""
    try:
        texts = raw.cast(pa.string())
        if target == pa.string():
            return texts
        read = _NATURAL.get((oid, "decimal" if type_.startswith("decimal") else type_))
        if read is not None:
            return read(texts, target)
        decode = decoder(type_)
        return pa.array([None if text is None else decode(text) for text in texts.to_pylist()], target)
    except _REFUSALS:
        raise NotPlainError from None


def _cast(texts: pa.Array, target: pa.DataType) -> pa.Array:
    return texts.cast(target)


def _boolean(texts: pa.Array, target: pa.DataType) -> pa.Array:
    is_true = pc.equal(texts, "t")
    _demand(pc.or_(is_true, pc.equal(texts, "f")))
    return is_true


def _single(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Rounded as a value by itself is: from the double that is written."""
    return texts.cast(pa.float64()).cast(target)


def _instant(texts: pa.Array, target: pa.DataType) -> pa.Array:
    _demand(pc.ends_with(texts, "+00"))
    return texts.cast(target)


def _demand(holds: pa.Array) -> None:
    if pc.all(holds).as_py() is False:
        raise NotPlainError


_NATURAL: Mapping[tuple[int, str], Read] = {
    (16, "boolean"): _boolean,
    (20, "bigint"): _cast,
    (21, "smallint"): _cast,
    (23, "int"): _cast,
    (26, "bigint"): _cast,
    (700, "float"): _single,
    (701, "double"): _cast,
    (1082, "date"): _cast,
    (1114, "timestamp_ntz"): _cast,
    (1184, "timestamp"): _instant,
    (1700, "decimal"): _cast,
}
"""By the type at the source and ours."""
