"""Tables and views as of one catalog snapshot: their plans, their rows and their changes at any csn in reach."""
