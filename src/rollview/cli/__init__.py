"""The command line: a thin shell. Commands call the warehouse and hand its answer to one output; they never format."""
