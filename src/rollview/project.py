"""A project: a folder with ``rollview.yaml``, which says where the warehouse is and how Spark is started.

Law: a secret is never in the file, only a reference to it: ``env:NAME`` or ``file:PATH``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rollview.core import references
from rollview.core.durations import duration
from rollview.core.lazy import lazy_module
from rollview.core.order import Order
from rollview.core.ownership import is_trusted
from rollview.core.shapes import Misfit, shaped
from rollview.core.states import Extent, Policy
from rollview.core.substitutes import Substitute
from rollview.errors import AlreadyExists, NotFound, UsageError
from rollview.results import Result
from rollview.sources.settings import GlobalSettings, SourceSettings, TableSettings, table_named

if TYPE_CHECKING:
    import yaml
    from pydantic import ValidationError

    from rollview import warehouse
    from rollview.relations import policies
    from rollview.results import CatalogRecovery
else:
    policies = lazy_module("rollview.relations.policies")
    warehouse = lazy_module("rollview.warehouse")

FILE = "rollview.yaml"
SAFE = "ROLLVIEW_SAFE_PROJECTS"
"""Folders of projects that are trusted although they belong to another user, as in PATH."""
VIEWS = "views"

_STRICT = {"extra": "forbid"}
HowToCopy = Literal["all", "needed", "none"]
_BY_VIEWS = ("needed", "none")
"""Where views say which columns and rows are captured."""
_SAID = {"unexpected_keyword_argument": "there is no such setting", "missing": "it is not there, and has to be"}

_TEMPLATE = """\
version: 1

# Where tables, views and the catalog are kept, relative to this file.
warehouse: .rollview

# The catalog is embedded in the warehouse unless a PostgreSQL URL is given. Keep a URL with a password out of this
# file: write env:NAME or file:PATH.
# catalog: env:ROLLVIEW_CATALOG

# How long changes are kept, and kept commit by commit; 'rollview maintain' prunes and compresses what is older. Without
# these, for ever. Either may also be given by name: {default: 30 days, orders: 90 days}.
# retention: 30 days
# detail: 7 days

# When 'rollview run' captures sources and refreshes views: every 10 seconds, cron 0 * * * *, within 5 minutes,
# continuous or manual; one for all, or by name.
# schedule: {default: every 10 seconds, bank: continuous}

# When it propagates views besides refreshing them, in the same words.
# propagate: {default: manual, revenue: continuous}

# When views are propagated and applied: snapshot (recomputed when asked), immediate (both in the commit), ipda
# (propagated in the commit, applied later) or dpda (both later). One for all, by name, or for all views over some
# tables. A view's own property rollview.policy wins.
# policy: {default: dpda, revenue: immediate, over: [{tables: [orders, lines], policy: ipda}]}

# Databases and folders whose tables are captured; add each with 'rollview source add NAME'.
# sources:
#   bank:
#     kind: postgres
#     address: env:BANK_URL
#     tables: [public.accounts]

# Commits of several sources are ordered as they come, or by their commit times: then a commit waits until every source
# has passed its time, but not for a source that is further behind than the delay.
# order: commit_time
# delay: 5 minutes

# How many workers refresh views side by side. On few cores two to four help where views are many and small.
# parallel: 4

# Tables that stand for others in views when those are gone: which columns for which, and whether their rows are equal,
# a subset, a superset, or any.
# substitutes:
#   - {of: customer, by: registered_user, columns: {name: login}, extent: equal}

# Settings for the Spark session.
# spark:
#   spark.driver.memory: 8g
"""


@dataclass(frozen=True, slots=True)
class TableConfig:
    """``name`` is what the table is called here; without it, the last part of the source's own name. ``columns``: those
    that are captured; without it, all. ``rows``: a condition that the captured rows fulfil, in Spark's SQL.
    ``copy``: ``all`` of that, only what views need, or no rows at all (``none``): the source is asked for them."""

    __pydantic_config__ = _STRICT

    table: str
    name: str | None = None
    types: dict[str, str] | None = None
    key: list[str] | None = None
    format: str | None = None
    columns: list[str] | None = None
    rows: str | None = None
    copy: HowToCopy | None = None

    def settings(self, copy: HowToCopy) -> TableSettings:
        """``copy``: what the source says where the table does not."""
        if self.copy in _BY_VIEWS and (self.columns or self.rows):
            raise UsageError(
                f"Table '{self.table}' says its columns or rows, and that views say them.",
                hint=f"Leave out columns and rows, or copy: {self.copy}.",
            )
        plain = self.columns or self.rows
        relation = self.name or self.table.rpartition(".")[2]
        types = {column: type_.lower() for column, type_ in (self.types or {}).items()}
        chosen = tuple(self.columns or ())
        key, rows = tuple(self.key or ()), self.rows or ""
        settings = TableSettings(relation, self.table, types, key, self.format, chosen, rows)
        return settings if plain else _copied(settings, self.copy or copy)


def _copied(settings: TableSettings, copy: HowToCopy) -> TableSettings:
    return replace(settings, needed=copy in _BY_VIEWS, asked=copy == "none")


@dataclass(frozen=True, slots=True)
class GlobalConfig:
    """Transactions that several sources have parts of: where their ids are, who takes part, how long a part waits."""

    __pydantic_config__ = _STRICT

    table: str | None = None
    id: str | None = None
    parts: str | None = None
    sources: list[str] | None = None
    limit: str = "10 minutes"

    def settings(self) -> GlobalSettings:
        return GlobalSettings(self.table, self.id, self.parts, tuple(self.sources or ()), self.limit)


@dataclass(frozen=True, slots=True)
class SourceConfig:
    __pydantic_config__ = _STRICT

    kind: str
    address: str
    tables: list[str | TableConfig]
    options: dict[str, str | int | float | bool] | None = None
    global_transactions: GlobalConfig | None = None
    copy: HowToCopy = "all"

    def settings(self) -> SourceSettings:
        tables = (
            _copied(table_named(table), self.copy) if isinstance(table, str) else table.settings(self.copy)
            for table in self.tables
        )
        options = {key: _spelled(value) for key, value in (self.options or {}).items()}
        together = self.global_transactions.settings() if self.global_transactions is not None else None
        return SourceSettings(self.kind, self.address, tuple(tables), options, together)


@dataclass(frozen=True, slots=True)
class PolicyOver:
    """The policy of all views that rest on no other tables than these."""

    __pydantic_config__ = _STRICT

    tables: list[str]
    policy: str


@dataclass(frozen=True, slots=True)
class SubstituteConfig:
    """``columns``: of the table that may be gone, and those that stand for them. ``extent``: of the rows that stand for
    others, beside those."""

    __pydantic_config__ = _STRICT

    of: str
    by: str
    columns: dict[str, str]
    extent: Extent = Extent.EQUAL


PolicyConfig = str | dict[str, str | list[PolicyOver]]


@dataclass(frozen=True, slots=True)
class Config:
    """What ``rollview.yaml`` says, references not yet resolved."""

    version: Literal[1]
    warehouse: str = ".rollview"
    catalog: str | None = None
    spark: dict[str, str | int | float | bool] | None = None
    retention: str | dict[str, str] | None = None
    detail: str | dict[str, str] | None = None
    sources: dict[str, SourceConfig] | None = None
    schedule: str | dict[str, str] | None = None
    propagate: str | dict[str, str] | None = None
    policy: PolicyConfig | None = None
    order: Literal["arrival", "commit_time"] = "arrival"
    delay: str = "5 minutes"
    parallel: int = 1
    substitutes: list[SubstituteConfig] | None = None


@dataclass(frozen=True, slots=True)
class ProjectStarted(Result):
    folder: str
    file: str
    warehouse: str


@dataclass(frozen=True, slots=True)
class Project:
    folder: Path
    config: Config

    @property
    def root(self) -> Path:
        return self.folder / Path(self.config.warehouse).expanduser()

    def catalog_url(self) -> str | None:
        catalog = _without_secret(self.config.catalog)
        return None if catalog is None else resolve(catalog, self.folder)

    def spark_conf(self) -> dict[str, str]:
        settings = {key: _spelled(value) for key, value in (self.config.spark or {}).items()}
        for key, value in settings.items():
            if references.is_literal_secret(key, value):
                raise UsageError(
                    f"The secret '{key}' does not belong in {FILE}.",
                    hint="Put it into the environment and write env:NAME, or into a file and write file:PATH.",
                )
        return {key: resolve(value, self.folder) for key, value in settings.items()}

    def substitutes(self) -> tuple[Substitute, ...]:
        """In the order of the file, which says which is taken first."""
        listed = enumerate(self.config.substitutes or ())
        return tuple(
            Substitute(one.of, one.by, one.columns, one.extent, f"{FILE}: substitutes.{place}") for place, one in listed
        )

    def policies(self) -> policies.Policies:
        """Of views that name none themselves."""
        given = {"default": self.config.policy} if isinstance(self.config.policy, str) else self.config.policy or {}
        over, named = given.get("over", []), {name: text for name, text in given.items() if isinstance(text, str)}
        if isinstance(over, str) or len(named) + ("over" in given) < len(given):
            hint = "Write policy: {default: dpda, VIEW: ipda, over: [{tables: [T, U], policy: ipda}]}"
            raise UsageError(f"policy: in {FILE} is not right.", hint=hint)
        chosen = {name.lower(): policies.parse_policy(text) for name, text in named.items()}
        sets = ((frozenset(map(str.lower, one.tables)), policies.parse_policy(one.policy)) for one in over)
        return policies.Policies(chosen.pop("default", Policy.DPDA), chosen, tuple(sets))

    def _parallel(self) -> int:
        if self.config.parallel < 1:
            raise UsageError(f"parallel: in {FILE} is {self.config.parallel}; at least one worker is needed.")
        return self.config.parallel

    def source(self, name: str) -> SourceSettings:
        """What the file says of a source, its paths understood from anywhere."""
        found = (self.config.sources or {}).get(name)
        if found is None:
            hint = f"Describe it under sources: in {FILE}, or give its kind, address and tables."
            raise NotFound("source in the project", name, hint=hint)
        return found.settings().anchored(self.folder)

    def declared(self) -> tuple[str, ...]:
        """The SQL of the views that the project's folder has, whether or not they are created."""
        return tuple(path.read_text(encoding="utf-8") for path in sorted((self.folder / VIEWS).rglob("*.sql")))

    def open(self) -> warehouse.Warehouse:
        for source in (self.config.sources or {}).values():
            references.note_variables(source.address, *map(_spelled, (source.options or {}).values()))
        order = Order(self.config.order == "commit_time", duration(self.config.delay))
        about = (self.catalog_url(), None, self.spark_conf(), order, self.policies(), self._parallel())
        return warehouse.Warehouse.open(self.root, *about, self.substitutes())

    def recover(self, *, accept_catalog: bool = False, accept_clock: bool = False) -> CatalogRecovery:
        accepted = {"accept_catalog": accept_catalog, "accept_clock": accept_clock}
        return warehouse.Warehouse.recover(self.root, self.catalog_url(), **accepted)


def find_project(start: Path | None = None) -> Project:
    """The project of the nearest folder upwards that has one."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return load_project(folder)
    raise NotFound("project in", str(start), hint="Start one with 'rollview init NAME', or give --project-dir.")


def load_project(folder: Path) -> Project:
    # Most of the time of a command that reads nothing else.
    import yaml

    _refuse_strangers(folder)
    try:
        data = yaml.safe_load((folder / FILE).read_text(encoding="utf-8"))
    # Their messages quote the file, which may hold a secret that should not have been there.
    except yaml.YAMLError as cause:
        raise UsageError(f"'{folder / FILE}' is not valid YAML{_place_in(cause)}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"'{folder / FILE}' is not valid YAML: it is not UTF-8 text.") from None
    # A date that is none, a number of too many digits, values within values.
    except (ValueError, RecursionError) as cause:
        raise UsageError(f"'{folder / FILE}' cannot be read: {type(cause).__name__}.") from None
    return Project(folder, _validate(data or {}, folder / FILE))


def _refuse_strangers(folder: Path) -> None:
    """Its settings start Java with options and libraries, and say what is read: only whom this user trusts may say."""
    try:
        is_own = is_trusted(folder) and is_trusted(folder / FILE)
    except OSError as cause:
        raise UsageError(f"Cannot read '{folder / FILE}': {cause.strerror}.", file=str(folder / FILE)) from None
    allowed = [Path(place) for place in os.environ.get(SAFE, "").split(os.pathsep) if place]
    if not is_own and folder.resolve() not in [place.resolve() for place in allowed]:
        raise UsageError(
            f"'{folder / FILE}', or its folder, belongs to another user, and its settings can run code.",
            hint=f"If you trust its owner, allow it: export {SAFE}={folder}",
            file=str(folder / FILE),
        )


def _place_in(fault: yaml.YAMLError) -> str:
    mark = getattr(fault, "problem_mark", None) or getattr(fault, "context_mark", None)
    return f": it cannot be read at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""


def start_project(folder: Path, catalog: str | None = None) -> ProjectStarted:
    """Make the folder a project with an empty warehouse. ``catalog``: a URL, or a reference to one."""
    file = folder / FILE
    project = Project(folder, Config(version=1, catalog=_without_secret(catalog)))
    if file.exists():
        project = _without_warehouse(folder, catalog)
    warehouse.Warehouse.create(project.root, catalog_url=project.catalog_url()).close()
    (folder / VIEWS).mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(_settings(catalog), encoding="utf-8")
    _ignore_warehouse(folder / ".gitignore")
    return ProjectStarted(str(folder), str(file), str(project.root))


def _without_warehouse(folder: Path, catalog: str | None) -> Project:
    """A project whose settings are there and its data are not, as a clone of its repository is."""
    project = load_project(folder)
    if catalog is not None or project.root.exists():
        raise AlreadyExists("project in", str(folder), hint=f"Its settings are in '{folder / FILE}'.")
    return project


def _settings(catalog: str | None) -> str:
    example = "# catalog: env:ROLLVIEW_CATALOG"
    return _TEMPLATE if catalog is None else _TEMPLATE.replace(example, f"catalog: {json.dumps(catalog)}")


def _without_secret(catalog: str | None) -> str | None:
    if catalog is not None and references.holds_secret(catalog):
        raise UsageError(
            f"A password does not belong in {FILE}.",
            hint="Put the URL into the environment and give --catalog env:NAME, or into a file and give file:PATH.",
        )
    return catalog


def resolve(text: str, folder: Path) -> str:
    """The text itself, or what ``env:NAME`` or ``file:PATH`` refers to."""
    return references.resolve(text, folder, FILE)


def _spelled(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ignore_warehouse(path: Path) -> None:
    if not path.exists():
        path.write_text(".rollview/\n", encoding="utf-8")


def _validate(data: Any, file: Path) -> Config:
    try:
        return shaped(Config, data)
    except Misfit:
        return _converted(data, file)


def _converted(data: Any, file: Path) -> Config:
    # It converts what nearly fits and says what is wrong with the rest, and takes a fifth of a second to load.
    from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

    adapter = TypeAdapter(with_config(ConfigDict(extra="forbid"))(Config))
    try:
        return adapter.validate_python(data)
    except ValidationError as cause:
        raise UsageError(f"'{file}' is not right: {_first_fault(cause, data)}.", file=str(file)) from None


def _first_fault(error: ValidationError, data: Any) -> str:
    # The value itself is not shown: it may be a secret that should not have been there.
    # Of what may be text or more, the deepest fault is the one in the form that was meant.
    fault = max(error.errors(include_input=False, include_url=False), key=lambda one: len(one["loc"]))
    place = ".".join(_in_the_file(fault["loc"], data))
    said = _SAID.get(fault["type"], fault["msg"].lower())
    return f"{place}: {said}" if place else said


def _in_the_file(location: Sequence[str | int], data: Any) -> Iterator[str]:
    """The keys of a place, without the names of types that pydantic puts between them."""
    for place, part in enumerate(location, 1):
        inside = data.get(part) if isinstance(data, dict) else None
        if isinstance(data, list) and isinstance(part, int):
            inside = data[part]
        if inside is not None or (isinstance(data, dict) and (part in data or place == len(location))):
            yield str(part)
            data = inside
