"""MariaDB: where its log differs from MySQL's."""
