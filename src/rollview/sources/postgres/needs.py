"""What a server must be set to before anything of it is captured."""

from __future__ import annotations

from rollview.sources.postgres.server import Connection
from rollview.sources.protocol import Finding

_OLDEST = 150_000
_FACTS = """
    SELECT current_setting('server_version_num')::int, current_setting('wal_level'), pg_is_in_recovery(),
           current_setting('server_encoding'),
           (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user),
           has_database_privilege(current_database(), 'CREATE'),
           (SELECT count(*) FROM pg_replication_slots) < current_setting('max_replication_slots')::int,
           current_setting('max_slot_wal_keep_size'), quote_ident(current_user), quote_ident(current_database())"""


def server_findings(connection: Connection) -> list[Finding]:
    row = connection.execute(_FACTS).fetchone()
    assert row is not None
    version, level, standby, encoding, replicates, creates, has_room, kept, user, database = row
    questions = [
        (version >= _OLDEST, Finding("the server is older than PostgreSQL 15")),
        (not standby, Finding("the server is a standby; give the address of the primary")),
        (encoding != "SQL_ASCII", Finding("the database's encoding is SQL_ASCII, so its text has no known meaning")),
        (
            level == "logical",
            Finding(
                f"wal_level is {level}, so changes of rows are not in the log; the server must be started again after",
                "ALTER SYSTEM SET wal_level = logical;",
            ),
        ),
        (replicates, Finding(f"the role {user} may not replicate", f"ALTER ROLE {user} REPLICATION;")),
        (
            creates,
            Finding(f"the role {user} may not publish tables", f"GRANT CREATE ON DATABASE {database} TO {user};"),
        ),
        (
            has_room,
            Finding(
                "all replication slots are taken; the server must be started again after",
                "ALTER SYSTEM SET max_replication_slots = 20;",
            ),
        ),
        (
            kept != "-1",
            Finding(
                "the server keeps its log without limit while rollview does not read it",
                "ALTER SYSTEM SET max_slot_wal_keep_size = '10GB';",
                blocks=False,
            ),
        ),
    ]
    return [finding for holds, finding in questions if not holds]
