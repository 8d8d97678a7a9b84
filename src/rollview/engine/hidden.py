"""How settings that hold secrets go to the Spark that we start.

Law: a secret is in a file that only this user can read, for as long as Spark starts; never on a command line, which
``ps`` shows to everybody, and never on Spark's environment page.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rollview.core.references import Secret, names_secret
from rollview.errors import UsageError

REDACTION = "spark.redaction.regex"

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_PROPERTIES = "--properties-file"
_JAVA_OPTIONS = "JavaOptions"
_USUAL = r"(?i)secret|password|passwd|passphrase|token|credential|jaas|access[.]?key|account[.]?key|key[.]?pem"
_ESCAPED = re.compile(r"[^A-Za-z0-9_.,;/@-]")


def secrets_in(conf: Mapping[str, str]) -> dict[str, str]:
    """What came from a reference, and what has a name like a secret's."""
    found = {key: value for key, value in conf.items() if isinstance(value, Secret) or names_secret(key)}
    for key in found:
        if key.endswith(_JAVA_OPTIONS):
            raise UsageError(
                f"The setting '{key}' cannot be a reference: Java's options are on the command line, which 'ps' shows.",
                hint="Write the options themselves; a secret belongs in a setting of its own.",
            )
    return found


def redaction(conf: Mapping[str, str], secrets: Mapping[str, str]) -> str:
    """A pattern for the names that Spark shows without values: the usual ones, the user's and those of secrets."""
    # Hadoop shows its settings without the prefix.
    names = (rf"\Q{key.removeprefix('spark.hadoop.')}\E" for key in sorted(secrets))
    own = [f"(?:{conf[REDACTION]})"] if REDACTION in conf else []
    return "|".join([_USUAL, *own, *names])


@contextmanager
def told_by_file(secrets: Mapping[str, str]) -> Iterator[None]:
    """Inside, Spark's launcher reads the secrets from a file; the file is gone afterwards."""
    if not secrets:
        yield
        return
    before = os.environ.get(_ARGUMENTS)
    _refuse_two_files(before or "")
    handle, name = tempfile.mkstemp(prefix="rollview-", suffix=".properties")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.writelines(f"{_escaped(key)}={_escaped(value)}\n" for key, value in secrets.items())
        own = f"--load-spark-defaults {_PROPERTIES} {shlex.quote(name)}"
        os.environ[_ARGUMENTS] = f"{own} {before or 'pyspark-shell'}"
        yield
    finally:
        Path(name).unlink()
        if before is None:
            os.environ.pop(_ARGUMENTS, None)
        else:
            os.environ[_ARGUMENTS] = before


def _refuse_two_files(arguments: str) -> None:
    if any(word.split("=")[0] == _PROPERTIES for word in shlex.split(arguments)):
        raise UsageError(
            f"{_ARGUMENTS} names a file of properties, and Spark takes only one: that of rollview's secrets.",
            hint="Take it out of the variable, and put its settings under spark: in rollview.yaml.",
        )


def _escaped(text: str) -> str:
    """As Java reads properties."""
    return _ESCAPED.sub(lambda found: "".join(_units(found[0])), text)


def _units(character: str) -> Iterator[str]:
    coded = character.encode("utf-16-be")
    for place in range(0, len(coded), 2):
        yield f"\\u{coded[place]:02x}{coded[place + 1]:02x}"
