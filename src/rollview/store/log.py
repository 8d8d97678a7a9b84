"""The Delta log of one part.

Law: after ``reconcile(target)`` returns v, the live files of version v are exactly ``target``. It does not matter
what the log held before: a version that nobody pinned is undone by the difference that the next commit writes.
"""

from __future__ import annotations

import json
import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from rollview.core import durable
from rollview.errors import Corrupt, EngineFailed, Retryable
from rollview.store import digest, repair
from rollview.store.datafile import DataFile, check_name, stats_json

_ATTEMPTS = 12
_CACHED_VERSIONS = 256
_SEEN_LOGS = 64

# Versions stay as long as a catalog may pin them; what is taken away is decided by rollview, not by a reader.
_CONFIGURATION: Mapping[str, str | None] = {
    "delta.checkpointInterval": "50",
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}

_COPY = "Copy its source again: rollview source resnapshot NAME"

Files = tuple[DataFile, ...]


class _RacedError(Exception):
    """Another process wrote the version we wanted."""


class DeltaLog:
    _known: ClassVar[OrderedDict[tuple[str, int], Files]] = OrderedDict()
    _seen: ClassVar[OrderedDict[str, tuple[DeltaTable, tuple[int, int] | None]]] = OrderedDict()
    _lock: ClassVar[Lock] = Lock()

    def __init__(self, root: Path, schema: pa.Schema) -> None:
        self._root = root
        self._schema = schema

    def files(self, version: int) -> Files:
        """The live files of a version, which never change."""
        if version < 0:
            raise Corrupt(f"No rows are kept in '{self._root}'.", hint=_COPY, path=str(self._root))
        known = self._recall(version)
        if known is not None:
            return known
        with durable.disk(self._root):
            files = self._listed(self._open(version))
            digest.check(self._made(version), files)
            return self._remember(version, files)

    def reconcile(self, target: Files, note: Mapping[str, str], keep: int | None) -> int:
        """Make ``target`` the newest version's files and return that version. Versions up to ``keep`` are pinned."""
        policy = Retrying(
            retry=retry_if_exception_type(_RacedError),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.01, max=0.5),
        )
        try:
            with durable.disk(self._root):
                version = policy(self._attempt, target, note, -1 if keep is None else keep)
        except RetryError as error:
            raise Retryable(
                f"Other processes kept committing to '{self._root}'.", hint="Try again later."
            ) from error.last_attempt.exception()
        self._remember(version, target)
        return version

    def declare(self, columns: pa.Schema) -> None:
        """Columns that files may have from now on. Idempotent."""
        table = DeltaTable(self._root.as_uri())
        present = {field.name for field in table.schema().fields}
        new = [field for field in DeltaSchema.from_arrow(columns).fields if field.name not in present]
        if new:
            table.alter.add_columns(new)
            self._sync(table.version())

    def declared(self) -> frozenset[str]:
        """The names of all columns that files have had."""
        with durable.disk(self._root):
            return frozenset(field.name for field in DeltaTable(self._root.as_uri()).schema().fields)

    def retype(self, columns: pa.Schema) -> None:
        """Columns have wider types from now on. Idempotent. The library that writes the log has no word for it."""
        table = DeltaTable(self._root.as_uri())
        wider = {field.name: field for field in DeltaSchema.from_arrow(columns).fields}
        fields = [wider.get(field.name, field) for field in table.schema().fields]
        if fields == table.schema().fields:
            return
        about, now = table.metadata(), int(time.time() * 1000)
        described = {
            "id": str(about.id),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": DeltaSchema(fields).to_json(),
            "partitionColumns": about.partition_columns,
            "configuration": about.configuration,
            "createdTime": about.created_time,
        }
        info = {"timestamp": now, "operation": "CHANGE COLUMN"}
        self._add_commit(table.version() + 1, [{"commitInfo": info}, {"metaData": described}])

    def _add_commit(self, version: int, actions: Sequence[Mapping[str, Any]]) -> None:
        """Whole or not at all, and never in place of another."""
        place = self._folder / f"_rv_{uuid4().hex}.tmp"
        with durable.disk(self._root):
            try:
                place.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
                durable.sync([place])
                os.link(place, self._made(version))
            except FileExistsError as error:
                raise Retryable(f"Another process committed to '{self._root}'.", hint="Run it again.") from error
            finally:
                place.unlink(missing_ok=True)
            self._sync(version)

    def withdraw(self, place: str, pinned: int) -> None:
        """A folder is about to go: if the newest version names it, the pinned version's files become the newest."""
        with durable.disk(self._root):
            newest = self._newest(pinned)
        if newest is None or newest.version() == pinned:
            return
        if any(file.path.startswith(f"{place}/") for file in self._listed(newest)):
            kept = self.files(pinned) if pinned >= 0 else ()
            self.reconcile(kept, {"withdrawn": str(newest.version())}, pinned)

    def _attempt(self, target: Files, note: Mapping[str, str], keep: int) -> int:
        told = {**{f"rollview.{key}": value for key, value in note.items()}, digest.KEY: digest.digest(target)}
        properties = CommitProperties(custom_metadata=told, max_commit_retries=0)
        newest = self._newest(keep)
        if newest is None:
            return self._create(target, properties)
        live = self._recall(newest.version())
        actions = _difference(self._listed(newest) if live is None else live, target)
        version = self._write(newest, actions, properties) if actions else newest.version()
        self._keep(newest)
        return version

    def _create(self, target: Files, properties: CommitProperties) -> int:
        self._root.mkdir(parents=True, exist_ok=True)
        try:
            create_table_with_add_actions(
                self._root.as_uri(),
                self._delta_schema,
                [_add(file) for file in target],
                mode="error",
                configuration=_CONFIGURATION,
                commit_properties=properties,
            )
        except (DeltaError, OSError) as error:
            if self._made(0).exists():
                raise _RacedError from error
            if isinstance(error, OSError):
                raise
            raise self._refused(error) from error
        self._sync(0)
        durable.sync([self._root, self._root.parent])
        return 0

    def _write(self, newest: DeltaTable, actions: list[AddAction | RemoveAction], properties: CommitProperties) -> int:
        version = newest.version() + 1
        try:
            newest.create_write_transaction(actions, "append", newest.schema(), commit_properties=properties)
        except CommitFailedError as error:
            raise _RacedError from error
        except DeltaError as error:
            raise self._refused(error) from error
        self._sync(version)
        return version

    def _refused(self, error: Exception) -> EngineFailed:
        return EngineFailed(f"Cannot commit to '{self._root}': {error}", hint=durable.ADVICE, path=str(self._root))

    @property
    def _delta_schema(self) -> DeltaSchema:
        return DeltaSchema.from_arrow(self._schema)

    def _newest(self, keep: int) -> DeltaTable | None:
        if not self._folder.is_dir():
            return None
        table = self._opened(None)
        # A cut commit above the pinned ones is either unreadable or, when nothing of it was left, seems empty.
        if table is None or repair.is_empty(self._made(table.version())):
            repair.drop_torn_commits(self._folder, keep)
            table = self._opened(None)
        if table is None and any(self._folder.glob("*.json")):
            raise self._unreadable("cannot be opened")
        return table

    def _open(self, version: int) -> DeltaTable:
        table = self._opened(version)
        if table is None:
            raise self._unreadable(f"has no readable version {version}")
        return table

    def _unreadable(self, how: str) -> Corrupt:
        return Corrupt(f"The Delta log in '{self._root}' {how}.", hint=digest.ADVICE, path=str(self._root))

    def _opened(self, version: int | None) -> DeltaTable | None:
        try:
            return self._caught_up() if version is None else DeltaTable(self._root.as_uri(), version=version)
        except (DeltaError, OSError):
            return self._opened(version) if repair.drop_torn_checkpoints(self._folder) else None

    def _caught_up(self) -> DeltaTable:
        """The newest version. A log that is as this process left it is only read on from there.

        It is the caller's alone, until they ``_keep`` it for the next one: reading on moves it.
        """
        with self._lock:
            table, mark = self._seen.pop(str(self._root), (None, None))
        if table is None or mark != self._mark(table.version()):
            return DeltaTable(self._root.as_uri())
        table.update_incremental()
        return table

    def _keep(self, table: DeltaTable) -> None:
        mark = self._mark(table.version())
        with self._lock:
            self._seen[str(self._root)] = table, mark
            if len(self._seen) > _SEEN_LOGS:
                self._seen.popitem(last=False)

    def _mark(self, version: int) -> tuple[int, int] | None:
        """By which a commit that was cut or replaced since is known."""
        try:
            found = self._made(version).stat()
        except FileNotFoundError:
            return None
        return found.st_size, found.st_mtime_ns

    def _listed(self, table: DeltaTable) -> Files:
        rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        names = [field.name for field in table.schema().fields]
        return tuple(self._listed_file(row, names) for row in rows)

    def _listed_file(self, row: Mapping[str, Any], names: Iterable[str]) -> DataFile:
        check_name(self._root, row["path"])
        columns = [name for name in names if row.get(f"min.{name}") is not None]
        return DataFile(
            path=row["path"],
            size=row["size_bytes"],
            rows=row["num_records"],
            stats={name: (row[f"min.{name}"], row[f"max.{name}"]) for name in columns},
            nulls={n: row[f"null_count.{n}"] for n in names if row.get(f"null_count.{n}") is not None},
            modified=row["modification_time"],
        )

    @property
    def _folder(self) -> Path:
        return self._root / "_delta_log"

    def _sync(self, version: int) -> None:
        made = self._made(version)
        beside = (made.with_suffix(".checkpoint.parquet"), self._folder / "_last_checkpoint")
        durable.sync([made, *(path for path in beside if path.exists()), self._folder])

    def _made(self, version: int) -> Path:
        return self._folder / f"{version:020d}.json"

    def _recall(self, version: int) -> Files | None:
        with self._lock:
            return self._known.get((str(self._root), version))

    def _remember(self, version: int, files: Files) -> Files:
        with self._lock:
            self._known[(str(self._root), version)] = files
            if len(self._known) > _CACHED_VERSIONS:
                self._known.popitem(last=False)
        return files


def _difference(live: Files, target: Files) -> list[AddAction | RemoveAction]:
    have, want = {file.path for file in live}, {file.path for file in target}
    now = int(time.time() * 1000)
    removes = [RemoveAction(file.path, True, now) for file in live if file.path not in want]
    return [*removes, *(_add(file) for file in target if file.path not in have)]


def _add(file: DataFile) -> AddAction:
    return AddAction(file.path, file.size, {}, file.modified, True, stats_json(file))
