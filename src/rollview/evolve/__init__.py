"""Changes of layout: which columns of a captured table are kept, and which views they stop."""
