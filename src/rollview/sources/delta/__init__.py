"""Delta tables that others write: every version is a unit of work."""
