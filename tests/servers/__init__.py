"""Real servers that tests start, use and stop."""
