"""The edge between a driver and everybody else.

Law: whatever a driver raises is an error of its source, with a name: nothing that a source sends, and no mistake of a
driver, reaches another source or ends a process. Errors that drivers tell in our own words pass as they are; but that a
table is not what it was is an answer to a reading, and leaves here as a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from errno import EDQUOT, ENOSPC
from typing import Any

from rollview.core.lent import Lent, UnlinkableError
from rollview.core.raised import kind_and_line
from rollview.errors import EnvironmentFault, RollviewError, SchemaChanged, SourceDown, Unreadable
from rollview.sources.asking import Ask, AskableSource, SourceAnswer, SourceStream
from rollview.sources.protocol import (
    Alterable,
    Batch,
    Finding,
    FirstCopy,
    Health,
    LayoutChange,
    Lender,
    Rows,
    Source,
    SourceTable,
    Watched,
    layout_change,
)

_PANIC = "PanicException"
"""What a library in Rust raises when it gives up; it is no Exception, so that nobody catches it by accident."""
_NO_ROOM = (ENOSPC, EDQUOT)
_LONGEST = 200


def as_error(source: str, error: BaseException, position: str | None = None) -> RollviewError:
    """The error of a source that an exception means. ``position``: after which it was read."""
    if isinstance(error, RollviewError):
        return error
    if isinstance(error, OSError):
        # Only the system's own words: other texts of the exception may quote an address.
        reason = error.strerror or type(error).__name__
        if error.errno in _NO_ROOM:
            return EnvironmentFault(f"Source '{source}' cannot be read: {reason}.", hint="Make room.", source=source)
        return SourceDown(source, reason)
    place = f"after position {position[:_LONGEST]}" if position else None
    return Unreadable(source, f"the driver raised {kind_and_line(error)}", place=place)


@contextmanager
def named(source: str, position: str | None = None) -> Iterator[None]:
    """Whatever the block raises is an error of the source."""
    try:
        yield
    except (RollviewError, UnlinkableError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        # Not even as its cause: the exception's own text may hold a secret.
        raise as_error(source, error, position) from None


def guarded(name: str, source: Source) -> Source:
    """The same source, from which nothing comes but what the protocol says and errors with names."""
    own = tuple(guard for ability, guard in _ABILITIES if isinstance(source, ability))
    made: type[_Guarded] = type("_GuardedSource", (*own, _Guarded), {})
    return made(name, source)


class _Guarded:
    def __init__(self, name: str, source: Source) -> None:
        self._name = name
        self._source = source
        self.kind = source.kind
        self.capabilities = source.capabilities

    def check(self) -> tuple[Finding, ...]:
        with named(self._name):
            return self._source.check()

    def tables(self) -> tuple[SourceTable, ...]:
        with named(self._name):
            return self._source.tables()

    @contextmanager
    def first_copy(self) -> Iterator[FirstCopy]:
        """What the block itself raises is not the source's."""
        with ExitStack() as stack:
            with named(self._name):
                copy = stack.enter_context(self._source.first_copy())
            yield replace(copy, rows=self._rows(copy.rows))

    def _rows(self, rows: Callable[[str], Iterator[Rows]]) -> Callable[[str], Iterator[Rows]]:
        def guarded_rows(remote: str) -> Iterator[Rows]:
            with named(self._name):
                pieces = rows(remote)
            while True:
                with named(self._name):
                    piece = next(pieces, None)
                if piece is None:
                    return
                yield piece

        return guarded_rows

    def read(self, after: str, limit: int) -> Batch | LayoutChange:
        with named(self._name, after):
            try:
                return self._source.read(after, limit)
            except SchemaChanged as error:
                return layout_change(error)

    def acknowledge(self, position: str) -> None:
        with named(self._name, position):
            self._source.acknowledge(position)

    def order(self, position: str) -> int:
        with named(self._name, position):
            return self._source.order(position)

    def withdraw(self, memory: Mapping[str, Any]) -> None:
        with named(self._name):
            self._source.withdraw(memory)

    def tidy(self, memory: Mapping[str, Any]) -> None:
        with named(self._name):
            self._source.tidy(memory)

    def remove(self) -> None:
        with named(self._name):
            self._source.remove()

    def close(self) -> None:
        with named(self._name):
            self._source.close()


class _GuardedWatched(_Guarded):
    def health(self) -> Health:
        assert isinstance(self._source, Watched)
        with named(self._name):
            return self._source.health()


class _GuardedLender(_Guarded):
    def lent(self, remote: str, position: str) -> tuple[Lent, ...]:
        assert isinstance(self._source, Lender)
        with named(self._name, position):
            return self._source.lent(remote, position)


class _GuardedAlterable(_Guarded):
    def alter(self, statement: str) -> None:
        assert isinstance(self._source, Alterable)
        with named(self._name):
            self._source.alter(statement)


class _GuardedAnswering(_Guarded):
    def ask(self, asks: Sequence[Ask]) -> SourceAnswer:
        assert isinstance(self._source, AskableSource)
        with named(self._name):
            return self._source.ask(asks)

    def statement(self, table: SourceTable, equal: Sequence[str]) -> str:
        assert isinstance(self._source, AskableSource)
        return self._source.statement(table, equal)

    @contextmanager
    def stream(self) -> Iterator[SourceStream]:
        assert isinstance(self._source, AskableSource)
        with ExitStack() as stack:
            with named(self._name):
                found = stack.enter_context(self._source.stream())
            yield replace(found, rows=self._rows(found.rows))

    @contextmanager
    def moment(self) -> Iterator[None]:
        assert isinstance(self._source, AskableSource)
        with ExitStack() as stack:
            with named(self._name):
                stack.enter_context(self._source.moment())
            yield


_ABILITIES: tuple[tuple[Any, type[_Guarded]], ...] = (
    (Watched, _GuardedWatched),
    (Lender, _GuardedLender),
    (Alterable, _GuardedAlterable),
    (AskableSource, _GuardedAnswering),
)
"""What only some sources can do, and the edge around it."""
