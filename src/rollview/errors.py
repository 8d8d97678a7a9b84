"""Every error rollview raises.

RollviewError                 root: code, retryable, facts, hint
├── UsageError                the request itself is wrong
│   ├── NotFound              no such table, view, warehouse or csn
│   ├── AlreadyExists         the name is taken
│   ├── InvalidName           what cannot be a name
│   ├── SqlError              the text is wrong; says where
│   │   ├── NotDeterministic  a value that the rows do not determine
│   │   └── Unsupported       right SQL that rollview does not take
│   │       └── Unsafe        it would run code or read files; taken only when allowed
│   ├── InUse                 others depend on it
│   └── OutOfReach            a csn or moment that cannot be read or rolled to
├── ConstraintViolated        a transaction broke a declared constraint
├── NotFollowed               a transaction that an immediate view cannot follow
├── Retryable                 try again later
│   ├── Conflict              another transaction committed first
│   ├── Busy                  another process holds the lease
│   ├── StaleStep             what was computed belongs to a view that was changed meanwhile
│   ├── SourceDown            a source does not answer
│   ├── AskTooLarge           a source gives too much, or takes too long, for so many keys
│   ├── SinkDown              what a subscriber is delivered to does not answer
│   ├── InDoubt               what an answer was read from went away twice while it was fetched
│   └── NotPassed             a source is not known to have passed a moment
├── SourceStopped             a source cannot be read on until somebody acts
│   ├── LostPosition          the source no longer has what follows the last position
│   ├── SchemaChanged         a table of the source is not what it was
│   ├── BadValue              a value that no column of the table's type can hold
│   ├── OutsideFolder         a file that lies outside of the source's folder
│   ├── NotAFile              a FIFO, a device or a folder where a file should be
│   ├── SpoolFull             more rows at once than may be on disk
│   └── Unreadable            the source gives something that is not understood
├── LostLease                 this process was too slow and another took over
├── Corrupt                   what is stored contradicts itself; the view is stopped
├── WrongCatalog              the catalog and the data belong to two warehouses
├── OldCatalog                the catalog is older than the data, as a restored backup is
├── EnvironmentFault          Java, Spark or the disk is not as needed
│   └── ClockJumped           a clock is more than a day ahead of another
└── EngineFailed              Spark or storage refused a step
"""

from __future__ import annotations

from datetime import datetime
from typing import Any


class RollviewError(Exception):
    """A sentence about one thing, and what to do next."""

    code = "error"
    retryable = False

    def __init__(self, message: str, *, hint: str | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "facts": self.facts,
        }


class UsageError(RollviewError):
    code = "usage"


class NotFound(UsageError):
    code = "not_found"

    def __init__(self, what: str, name: str, *, hint: str | None = None, **facts: Any) -> None:
        super().__init__(f"There is no {what} '{name}'.", hint=hint, what=what, name=name, **facts)


class AlreadyExists(UsageError):
    code = "already_exists"

    def __init__(self, what: str, name: str, *, hint: str | None = None) -> None:
        super().__init__(f"There is a {what} '{name}' already.", hint=hint, what=what, name=name)


class InvalidName(UsageError):
    code = "invalid_name"

    def __init__(self, what: str, name: str, reason: str) -> None:
        super().__init__(f"{name!r} cannot be the name of a {what}: {reason}.", what=what, name=name)


class SqlError(UsageError):
    code = "sql"

    def __init__(
        self, message: str, *, line: int | None = None, column: int | None = None, hint: str | None = None, **facts: Any
    ) -> None:
        place = f" (line {line}, column {column})" if line is not None else ""
        super().__init__(message + place, hint=hint, line=line, column=column, **facts)


class NotDeterministic(SqlError):
    code = "not_deterministic"


class Unsupported(SqlError):
    code = "unsupported"


class Unsafe(Unsupported):
    code = "unsafe"

    def __init__(self, name: str, reason: str, line: int | None, column: int | None) -> None:
        super().__init__(
            f"'{name}' is not taken from a statement: {reason}.",
            line=line,
            column=column,
            hint="Where you trust the text: --allow-unsafe, in Python allow_unsafe=True. A view can never use it.",
            name=name,
        )


class InUse(UsageError):
    code = "in_use"

    def __init__(self, what: str, name: str, by: tuple[str, ...]) -> None:
        users = ", ".join(f"'{user}'" for user in by)
        super().__init__(
            f"Cannot drop {what} '{name}': {users} read it.", hint="Drop those first.", what=what, name=name, by=by
        )


class OutOfReach(UsageError):
    code = "out_of_reach"


class ConstraintViolated(RollviewError):
    code = "constraint"

    def __init__(self, table: str, constraint: str, example: str) -> None:
        super().__init__(
            f"Table '{table}' would violate {constraint}: {example}.",
            hint="Nothing was changed: the whole transaction was undone.",
            table=table,
            constraint=constraint,
        )


class NotFollowed(RollviewError):
    code = "not_followed"

    def __init__(self, view: str, reason: str) -> None:
        super().__init__(
            f"The transaction is undone: the view '{view}', which has to follow it at once, cannot. {reason}",
            hint=f"Refresh the view to see whether it is right again, or let it follow later: "
            f"rollview view set {view} rollview.policy=dpda",
            view=view,
            reason=reason,
        )


class Retryable(RollviewError):
    code = "retryable"
    retryable = True


class Conflict(Retryable):
    code = "conflict"

    def __init__(self, table: str, detail: str) -> None:
        super().__init__(
            f"Another transaction changed the same rows of table '{table}' first: {detail}.",
            hint="Nothing was changed. Run the transaction again.",
            table=table,
        )


class Busy(Retryable):
    code = "busy"

    def __init__(self, thing: str, holder: str, since: str) -> None:
        super().__init__(
            f"{thing} is being changed by {holder} since {since}.",
            hint="Wait for it, or try again later.",
            thing=thing,
            holder=holder,
        )


class StaleStep(Retryable):
    code = "stale_step"

    def __init__(self, view: str) -> None:
        super().__init__(
            f"View '{view}' got another definition, or was propagated, while a step of it was computed.",
            hint="Nothing was changed. Run it again.",
            view=view,
        )


class AskTooLarge(Retryable):
    code = "ask_too_large"

    def __init__(self, table: str, keys: int, reason: str) -> None:
        super().__init__(
            f"Table '{table}' cannot be asked for rows of {keys} keys at once: {reason}.",
            hint="Give the source's option ask_rows or ask_seconds a larger value, an index there, or copy the table.",
            table=table,
            keys=keys,
        )


class SourceDown(Retryable):
    code = "source_down"

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(
            f"Source '{source}' does not answer: {reason}.",
            hint="Nothing was lost. Try again when it is back.",
            source=source,
        )


class SinkDown(Retryable):
    code = "sink_down"

    def __init__(self, subscriber: str, reason: str) -> None:
        super().__init__(
            f"Subscriber '{subscriber}' cannot be delivered to: {reason}.",
            hint="Nothing was lost: the same changes come again when it answers.",
            subscriber=subscriber,
        )


class InDoubt(Retryable):
    code = "in_doubt"

    def __init__(self, csn: int) -> None:
        super().__init__(
            f"Files that the answer at csn {csn} is read from went away while it was fetched, twice.",
            hint="Ask again, or give maintenance a longer grace period.",
            csn=csn,
        )


class NotPassed(Retryable):
    code = "not_passed"

    def __init__(self, source: str, moment: datetime, known: datetime | None) -> None:
        passed = f"only known to have passed {known.isoformat()}" if known is not None else "not read yet"
        super().__init__(
            f"Source '{source}' is {passed}, so what it committed by {moment.isoformat()} is not all here.",
            hint=f"Capture it first: rollview capture {source}",
            source=source,
            known=known.isoformat() if known is not None else None,
        )


class SourceStopped(RollviewError):
    code = "source_stopped"


class LostPosition(SourceStopped):
    code = "lost_position"

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(
            f"Source '{source}' cannot be read on from where it was left: {reason}.",
            hint=f"Copy it again and take the difference as one change: rollview source resnapshot {source}",
            source=source,
        )


class SchemaChanged(SourceStopped):
    code = "schema_changed"

    def __init__(self, source: str, table: str, reason: str) -> None:
        super().__init__(
            f"Table '{table}' of source '{source}' is not what it was: {reason}.",
            hint="Its views stay at their last good csn. Undo the change there, or remove the source and add it.",
            source=source,
            table=table,
        )
        self.table = table
        self.reason = reason


class BadValue(SourceStopped):
    code = "bad_value"

    def __init__(self, source: str, table: str, column: str, reason: str, position: str | None = None) -> None:
        place = f" at position {position}" if position is not None else ""
        super().__init__(
            f"Table '{table}' of source '{source}' has a value in column '{column}'{place} "
            f"that cannot be represented: {reason}.",
            hint="Declare another type for the column, for example string, and add the source anew.",
            source=source,
            table=table,
            column=column,
            position=position,
        )


class OutsideFolder(SourceStopped):
    code = "outside_folder"

    def __init__(self, source: str, path: str, target: str, folder: str) -> None:
        super().__init__(
            f"Source '{source}' would read '{target}' for '{path}', which is outside of its folder '{folder}'.",
            hint="Put the file into the folder. To read anywhere on this machine, give the source the option "
            f"allow_outside: true in rollview.yaml, and run: rollview source add {source}",
            source=source,
            path=path,
            target=target,
            folder=folder,
        )


class NotAFile(SourceStopped):
    code = "not_a_file"

    def __init__(self, source: str, path: str, found: str) -> None:
        super().__init__(
            f"Source '{source}' has '{path}' where a file should be: it is {found}.",
            hint="Take it away, or put a file in its place. Nothing was read from it.",
            source=source,
            path=path,
            found=found,
        )


class SpoolFull(SourceStopped):
    code = "spool_full"

    def __init__(self, source: str, limit: int) -> None:
        super().__init__(
            f"Source '{source}' has more rows in one transaction or copy than may be on disk at once, {limit:,} bytes.",
            hint="If the warehouse's disk has the room, give the source a larger option spool_limit in rollview.yaml, "
            f"run 'rollview source add {source}', and capture it again.",
            source=source,
            limit=limit,
        )


class Unreadable(SourceStopped):
    code = "unreadable"

    def __init__(self, source: str, reason: str, *, place: str | None = None, text: str | None = None) -> None:
        """``place``: where in the source it is, or after which position; ``text``: how it begins."""
        where = f" ({place})" if place is not None else ""
        begins = f"; it begins with {text!r}" if text else ""
        super().__init__(
            f"Source '{source}' gives something that cannot be read{where}: {reason}{begins}.",
            hint="Repair it at the source, and it goes on by itself; or copy its tables again, from beyond it: "
            f"rollview source resnapshot {source}",
            source=source,
            place=place,
        )


class LostLease(RollviewError):
    code = "lost_lease"
    retryable = True

    def __init__(self, thing: str) -> None:
        super().__init__(
            f"This process held {thing} for too long without a sign of life, and another took over.",
            hint="Nothing it wrote since then is visible. Run the command again.",
            thing=thing,
        )


class Corrupt(RollviewError):
    code = "corrupt"


class WrongCatalog(RollviewError):
    code = "wrong_catalog"

    def __init__(self, catalog: str, catalog_id: str, data: str, data_id: str | None) -> None:
        """``data_id`` None: the data carry no id, and the catalog does not know them."""
        belong = f"belong to warehouse {data_id}" if data_id else "carry no id and have folders that it does not know"
        super().__init__(
            f"The catalog {catalog} belongs to warehouse {catalog_id}, but the data in '{data}' {belong}.",
            hint="Nothing was changed. See which catalog and warehouse rollview.yaml names: they must belong together."
            if data_id
            else "Nothing was changed. If they do belong together: rollview recover --accept-catalog",
            catalog=catalog,
            catalog_id=catalog_id,
            data=data,
            data_id=data_id,
        )


class OldCatalog(RollviewError):
    code = "old_catalog"

    def __init__(self, catalog: str, catalog_steps: int, data: str, data_steps: int) -> None:
        super().__init__(
            f"The catalog {catalog} is older than the data in '{data}': it has begun {catalog_steps} steps, and "
            f"the data were written by {data_steps}.",
            hint="Nothing was changed. If it was restored from a backup, restore a newer one; or go on from this one, "
            "without what was done since: rollview recover --accept-catalog",
            catalog=catalog,
            catalog_steps=catalog_steps,
            data=data,
            data_steps=data_steps,
        )


class EnvironmentFault(RollviewError):
    code = "environment"


class ClockJumped(EnvironmentFault):
    code = "clock_jumped"

    def __init__(self, now: datetime, second: str, other: datetime, last: datetime) -> None:
        """``second``: by which clock it is ``other``. ``last``: the newest time in the ledger."""
        super().__init__(
            f"The clock says {now.isoformat(' ', 'seconds')}, but {second} it is {other.isoformat(' ', 'seconds')}; "
            f"the newest commit is of {last.isoformat(' ', 'seconds')}.",
            hint="Nothing was changed: the ledger's time cannot be taken back. Set the clock right and run the command "
            "again. If it is right now: rollview recover --accept-clock",
            now=now.isoformat(),
            other=other.isoformat(),
            last=last.isoformat(),
        )


class EngineFailed(RollviewError):
    code = "engine"
