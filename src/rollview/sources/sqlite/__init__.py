"""SQLite: triggers write every change into a log inside the same transaction; the log is read and pruned."""
