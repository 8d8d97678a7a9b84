"""MariaDB: the binary log in row format, read by global transaction id."""
