from __future__ import annotations

from rollview.sources.mysql.source import MysqlSource
from tests.sources.mariadb_harness import MariadbHarness


class MysqlHarness(MariadbHarness):
    kind = "mysql"
    capabilities = MysqlSource.capabilities
