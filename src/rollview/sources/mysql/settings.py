"""What a MySQL server must be set to, and the statements that set it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollview.sources.binlog.server import filter_findings, log_findings, setting, version_of
from rollview.sources.mysql.gtids import GtidSet, NotUnderstoodError
from rollview.sources.protocol import Finding

_OLDEST = (8, 0)
_RENAMED = (8, 2)
_SETTER = "SET PERSIST"
_STEPS = ("OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
_WANTED = {"binlog_row_value_options": "", "binlog_transaction_compression": "OFF"}


def server_findings(connection: Any, facts: Mapping[str, str], database: str) -> list[Finding]:
    if "mariadb" in facts["version"].lower():
        return [Finding("the server is MariaDB; the kind of the source is mariadb")]
    if version_of(facts) < _OLDEST:
        return [Finding(f"the server is MySQL {facts['version']}; 8.0 is the oldest that tells enough")]
    found = [*log_findings(facts, _SETTER), *_ids(facts)]
    found += [one for one in (setting(facts, _SETTER, name, value) for name, value in _WANTED.items()) if one]
    if facts.get("log_replica_updates", "ON") != "ON":
        found.append(Finding("what the server replicates is not in its log; start it with log_replica_updates"))
    status = "SHOW BINARY LOG STATUS" if version_of(facts) >= _RENAMED else "SHOW MASTER STATUS"
    return found + filter_findings(connection, status, database)


def _ids(facts: Mapping[str, str]) -> Iterator[Finding]:
    if facts["gtid_mode"] != "ON":
        yield Finding(f"gtid_mode is {facts['gtid_mode']}", " ".join(_repairs(facts)))
    try:
        GtidSet.parse(facts["gtid_executed"])
    except NotUnderstoodError as error:
        yield Finding(str(error))


def _repairs(facts: Mapping[str, str]) -> Iterator[str]:
    """The mode moves by single steps."""
    if facts["enforce_gtid_consistency"] != "ON":
        yield f"{_SETTER} enforce_gtid_consistency = ON;"
    for step in _STEPS[_STEPS.index(facts["gtid_mode"]) + 1 :]:
        yield f"{_SETTER} gtid_mode = {step};"
