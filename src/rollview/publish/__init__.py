"""Files become visible: steps, what dead processes left behind, and files replaced by better ones."""
