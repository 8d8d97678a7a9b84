"""Capture: committed units of work of the sources become csns, each once."""
