"""Values the whole project speaks in: csn, interval, schema, names. Standard library only."""
