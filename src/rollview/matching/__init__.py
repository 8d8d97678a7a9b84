"""Which stored views answer a query, told from their texts and the declared keys alone.

Law: nothing here reads a row or knows a csn. A match holds at every csn, because it is proven for all contents of the
tables.
"""

from rollview.matching.flat import Flat, NotFlat, flatten
from rollview.matching.match import Answering, NoMatch
from rollview.matching.rewrite import RewrittenQuery, rewrite, rewritings, written

__all__ = ["Answering", "Flat", "NoMatch", "NotFlat", "RewrittenQuery", "flatten", "rewrite", "rewritings", "written"]
