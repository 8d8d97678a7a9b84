"""What a Java machine of Spark gets that works for tests: little memory, and little time for optimizations."""

from __future__ import annotations

SMALL = {
    "spark.driver.memory": "2g",
    # A test's queries are over before code that is compiled with more care would pay. All of it has room: Java's own
    # choice for such code is 48 MB, which Spark fills within minutes and then compiles the same again and again.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
}

# Plans over a handful of rows cost less interpreted than compiled; the default is tested beside it.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
