"""One operator, one file: the node, how it is built, the columns it needs, what is known of its values, its note for
``explain``, its delta and its old state.

``operator.Operator`` says what is asked of each; ``operator_table`` lists them. An operator that is not linear calls
``keyed.delta``: it says by which columns its inputs meet, and how to evaluate it over rows that carry the moment they
belong to.
"""
