"""What MariaDB and MySQL have in common: a binary log in row format, read by global transaction id."""
