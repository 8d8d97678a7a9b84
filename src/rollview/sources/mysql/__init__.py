"""MySQL: where its log differs from MariaDB's."""
