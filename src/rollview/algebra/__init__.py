"""SQL text to normalised view to propagation SQL. Pure functions over sqlglot trees; Spark is never asked here."""
