"""What an audit found, and the tests that fail without its mends: a file for each section."""
