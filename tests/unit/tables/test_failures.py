"""What Spark says of a statement, told of the text that its author wrote."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from rollview.errors import SqlError
from rollview.tables.failures import statement_failures


def test_a_place_in_the_text_that_spark_was_given_is_not_told() -> None:
    said = "[UNRESOLVED_COLUMN] No column `nope`. SQLSTATE: 42703; line 1 pos 218;\n'Project [1]"
    with pytest.raises(SqlError) as caught, statement_failures("orders"):
        raise AnalysisException(said)
    assert caught.value.message.endswith("No column `nope`. SQLSTATE: 42703")
