"""Text files a user names on the command line."""

from __future__ import annotations

from pathlib import Path

from rollview.errors import UsageError


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except IsADirectoryError:
        raise UsageError(f"'{path}' is a folder.", hint=f"Name its files: {path}/*.sql", file=str(path)) from None
    except OSError as cause:
        raise UsageError(f"Cannot read '{path}': {cause.strerror}.", file=str(path)) from None
    except UnicodeDecodeError:
        raise UsageError(f"'{path}' is not UTF-8 text.", file=str(path)) from None


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as cause:
        raise UsageError(f"Cannot write '{path}': {cause.strerror}.", file=str(path)) from None
