"""What an audit found, and the tests that fail without its repairs: a file for each section."""
