"""Mutants that give the same results by design, each with the reason. They count as living all the same."""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {
    "algebra/combined_groups.py: _at_places: big(1) becomes big(-1)": "what is there is counted, not added up",
    "algebra/float_sums.py: _big: any becomes all": "what is added up is one column",
    "algebra/float_sums.py: _floating: any becomes all": "what is added up is one column",
    "algebra/needed.py: _conjuncts_over: a condition without not table.args.get('joins')": "it is not the first then",
    "algebra/needed.py: _rows_there: a condition without node is not table": "a table's place is the table",
    "algebra/needed.py: _rows_there: a condition without not isinstance(select, exp.Select)": "only they have tables",
    "algebra/notes.py: _origin: a condition without below is None": "every alias is there",
    "algebra/summary.py: find_aggregate: a condition without len(rel.sources) == 1": "a join reads a block",
    "apply/run.py: _net_change: Lt becomes LtE": "no step stays where it is",
    "apply/plan.py: _groups_pay: LtE becomes Lt": "an empty interval has no changes",
    "compensate/c_strobe.py: CStrobe._put: not only where term.partial.rows": "a query over nothing asks nothing",
    "compensate/rolling.py: one_for_each: Lt becomes LtE": "it reads no rows of the table",
    "propagate/create.py: _staged: min becomes max": "only how many files are written",
    "propagate/run.py: _terms: a condition without not step.moves": "what does not move has no terms to tell",
    "rules/aggregate.py: _of_present: all_of without column(None, _PRESENT)": "a missing row fulfils no condition",
    "rules/block.py: _term: Gt becomes GtE": "no input is joined with itself",
}
"""By ``Mutant.named``."""
