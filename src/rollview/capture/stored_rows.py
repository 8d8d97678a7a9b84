"""What the warehouse holds of a captured table, read in this process, and how other rows differ from it.

Law: held + difference(new) = new, as bags; so a table that was emptied, a folder that was read anew and a source that
was copied again are all one ordinary change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rollview.catalog import Part, Relation
from rollview.core.names import COUNT, CSN
from rollview.core.schema import Schema
from rollview.relations.folders import delta_folder, state_folder
from rollview.store.datafile import DataFile, safe_places
from rollview.store.folder import DeltaFolder, as_declared
from rollview.store.parquet import whole
from rollview.types.arrow import arrow_schema
from rollview.types.signed_rows import net_rows


def stored_table(root: Path, relation: Relation) -> pa.Table:
    """The table's rows with ``_count``, not added up."""
    state, delta = relation.pins[Part.STATE], relation.pins[Part.DELTA]
    base = load_rows(state_folder(root, relation), state.version)
    rows = base.append_column(COUNT, pa.array(np.ones(base.num_rows, dtype=np.int64)))
    changes = load_rows(delta_folder(root, relation), delta.version, after=state.through)
    return pa.concat_tables([rows, changes.filter(pc.greater(changes[CSN], state.through)).drop([CSN])])


def stored_pieces(root: Path, relation: Relation) -> Iterator[pa.Table]:
    """The same as ``stored_table``, a part at a time."""
    state, delta = relation.pins[Part.STATE], relation.pins[Part.DELTA]
    for base in iter_rows(state_folder(root, relation), state.version):
        yield base.append_column(COUNT, pa.array(np.ones(base.num_rows, dtype=np.int64)))
    for changes in iter_rows(delta_folder(root, relation), delta.version, after=state.through):
        yield changes.filter(pc.greater(changes[CSN], state.through)).drop([CSN])


def difference(root: Path, relation: Relation, new: pa.Table) -> pa.Table:
    """Rows with ``_count`` +1 or -1 that make what is held into ``new``."""
    schema = relation.schema
    come = new.select(list(schema.names)).append_column(COUNT, pa.array(np.ones(new.num_rows, dtype=np.int64)))
    gone = stored_table(root, relation)
    gone = gone.set_column(gone.num_columns - 1, COUNT, pc.negate(gone[COUNT]))
    return net_rows(pa.concat_tables([gone, come.cast(gone.schema)]))


def load_rows(folder: DeltaFolder, version: int, after: int | None = None) -> pa.Table:
    tables = list(iter_rows(folder, version, after))
    empty = arrow_schema(folder.schema).empty_table().rename_columns(list(folder.schema.names))
    return pa.concat_tables(tables) if tables else empty


def iter_rows(folder: DeltaFolder, version: int, after: int | None = None) -> Iterator[pa.Table]:
    """A part of a file at a time."""
    files = tuple(file for file in folder.files(version) if after is None or _reaches(file, after))
    for place, file in zip(safe_places(folder.root, files), files, strict=True):
        for rows in _read(place, folder.schema, file.constants):
            yield rows.rename_columns(list(folder.schema.names))


def _read(place: Path, schema: Schema, constants: Mapping[str, str | None]) -> Iterator[pa.Table]:
    with whole(place), pq.ParquetFile(place, coerce_int96_timestamp_unit="us") as file:
        there = set(file.schema_arrow.names)
        columns = [name for name in arrow_schema(schema).names if name in there]
        for number in range(file.num_row_groups):
            yield as_declared(file.read_row_group(number, columns=columns), schema, constants)


def _reaches(file: DataFile, after: int) -> bool:
    bounds = file.bounds(CSN)
    return bounds is None or bounds[1] > after


def total(files: Iterable[DataFile]) -> int:
    return sum(file.rows for file in files)
