# Every target installs what is missing first: a .venv with the project, and a Java when there is none.
PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest

SIDE_BY_SIDE := -n auto --maxprocesses 4

.DEFAULT_GOAL := help
.PHONY: help demo test check faults experiments bench bench-quick pg-ivm mysql soak mutants anywhere interop shape docs install constraints

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: .venv/.installed ## see rollview work, in the terminal, in under two minutes
	@$(PYTHON) -m demo.story

test: .venv/.installed ## run all tests, with a summary at the end: half an hour
	@$(PYTHON) -m tests.run

check: .venv/.installed ## format, lint, types, import layers and the quick unit tests: about a minute
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports
	$(PYTEST) $(SIDE_BY_SIDE) -m 'not slow and not postgres' tests/unit

experiments: .venv/.installed ## figures 12 to 21 of the paper on versions, into docs/lab: seconds
	@.venv/bin/rollview lab figures --into docs/lab

bench: .venv/.benchmarks ## all benchmarks side by side, with the goals: hours; goes on after an interruption
	@$(PYTHON) -m bench.run

bench-quick: .venv/.benchmarks ## the same on little data: minutes
	@$(PYTHON) -m bench.run --quick --warm-up 3 --rounds 5

pg-ivm: .venv/.installed ## get pg_ivm from Debian unstable's packages, for the benchmark beside it
	@$(PYTHON) .ci/unpack pg_ivm

.venv/.benchmarks: .venv/.installed
	@.venv/bin/uv pip install --quiet --python $(PYTHON) --constraint constraints.txt --group bench
	@touch $@

FAULTS := full
faults: .venv/.installed ## kills, failing calls, full disks, stopped processes and random tests in full size: hours; FAULTS=part for a part
	ROLLVIEW_FAULTS=$(FAULTS) $(PYTEST) $(SIDE_BY_SIDE) tests/property tests/golden tests/unit
	ROLLVIEW_FAULTS=$(FAULTS) $(PYTEST) tests/faults tests/interleaving tests/sources/test_lookup.py tests/sources/test_schema_changes.py \
		tests/sources/test_file_columns.py tests/sources/test_delta_columns.py tests/sources/test_debezium_columns.py tests/sources/test_debezium_statements.py \
		tests/spark/sources/test_altered_under_writers.py \
		tests/sources/test_algorithms_at_work.py tests/spark/ipda tests/spark/names tests/spark/oracle tests/spark/routing tests/spark/schedule \
		tests/spark/store/test_named_rows.py tests/spark/sources/test_asked.py tests/spark/tables/test_bulk.py \
		tests/audit/test_wrong_rows.py

mysql: .venv/.installed .mysql/mysqld ## the tests of MySQL as a source, with a server of Debian unstable's packages; takes 260 MB
	$(PYTEST) -m mysql tests/sources tests/spark/sources

.mysql/mysqld: .ci/unpack
	@$(PYTHON) .ci/unpack mysql

soak: .venv/.installed ## the long versions of tests of sources, with the figures that are promised: an hour
	ROLLVIEW_BANK=2000 ROLLVIEW_BANK_KILLS=40 ROLLVIEW_BANK_VIEWS=1 ROLLVIEW_DDLS=40 ROLLVIEW_HUGE_MB=2048 \
		ROLLVIEW_ALGORITHMS=50 ROLLVIEW_HANDOVERS=20 ROLLVIEW_DAEMON_KILLS=40 ROLLVIEW_KEEPS_UP=600 ROLLVIEW_KEEPS_UP_KILLS=20 \
		$(PYTEST) tests/sources tests/spark/sources/test_keeps_up.py

mutants: .venv/.installed ## do the tests notice small wrong changes? hours; goes on when stopped; MUTANTS=50 takes so many at random
	@$(PYTHON) -m tests.mutants $(if $(MUTANTS),--sample $(MUTANTS))

anywhere: .venv/.installed ## the demo's story on every kind of Spark session: minutes
	@ROLLVIEW_ANYWHERE=1 $(PYTEST) tests/anywhere

interop: .venv/.installed .venv-delta/.installed ## the JVM Delta library reads our tables, and we read its; takes 600 MB
	@ROLLVIEW_DELTA_PYTHON=$(CURDIR)/.venv-delta/bin/python \
		ROLLVIEW_DELTA_JARS=$$(echo $(CURDIR)/.venv-delta/lib/python3*/site-packages/jsoniq/jars/*.jar) \
		$(PYTEST) tests/anywhere/test_jvm_delta.py

# The package jsoniq brings the Delta library in its jar, built for this PySpark.
.venv-delta/.installed: .venv/.installed
	@.venv/bin/uv venv --quiet --clear --python $(PYTHON) .venv-delta
	@.venv/bin/uv pip install --quiet --python .venv-delta/bin/python pyspark==4.0.5 'pandas<3' pyarrow
	@.venv/bin/uv pip install --quiet --python .venv-delta/bin/python --no-deps jsoniq==3.0.2
	@touch $@

shape: .venv/.installed ## the shape of the code in figures: lines, cycles, imports inside functions, twins
	@$(PYTHON) -m tests.shape

docs: .venv/.installed ## write docs/reference from the code
	@$(PYTHON) docs/generate.py

install: .venv/.installed ## only install what is missing

constraints: .venv/.installed # pins the newest versions that pyproject.toml allows
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --group dev --group bench \
		--no-header --no-annotate --no-emit-index-url --output-file constraints.txt pyproject.toml

.venv/.installed: pyproject.toml constraints.txt .ci/install
	@.ci/install
	@touch $@
