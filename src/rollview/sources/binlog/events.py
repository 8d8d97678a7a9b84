"""Events of the log that cannot be read as rows.

Law: an event that is not understood stops the source, unless it says itself that it may be ignored or is known to
change no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pymysql import MySQLError

from rollview.errors import LostPosition, RollviewError

_IGNORABLE = 0x80
_NO_ROWS = frozenset({28, 36, 37, 41})
"""What may be ignored, what replication in groups notes, and a sign of life."""
_REASONS: Mapping[int, str] = {
    26: "the server lost a part of its log",
    34: "a transaction has no global id (gtid_mode must be ON)",
    39: "a row holds only what changed in its JSON (binlog_row_value_options must be empty in every session)",
    40: "a transaction is compressed (binlog_transaction_compression must be OFF in every session)",
    42: "the id of a transaction has a tag (gtid_next must be AUTOMATIC in every session)",
    **dict.fromkeys(range(165, 172), "an event is compressed (log_bin_compress must be OFF)"),
}


def understood(events: Iterable[Any], source: str) -> Iterator[Any]:
    try:
        yield from events
    except (RollviewError, MySQLError, OSError):
        raise
    # The driver raises whatever it meets where an event is not as it thinks.
    except Exception as error:
        what = f"the driver cannot read an event of the log ({type(error).__name__})"
        raise LostPosition(source, what) from None


def reason_to_stop(event: Any) -> str | None:
    number: int = event.event_type
    if number in _NO_ROWS or event.packet.flags & _IGNORABLE:
        return None
    return _REASONS.get(number, f"the log holds an event of type {number}, which is not understood")
