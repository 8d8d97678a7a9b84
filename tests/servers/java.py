"""What a Java machine of Spark gets that works for tests: little memory, and little time for its own optimizations."""

from __future__ import annotations

SMALL = {
    "spark.driver.memory": "2g",
    # A test's queries are over before code that is compiled with more care would pay.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
