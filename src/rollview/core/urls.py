"""The address of a server as a URL, which may hold a secret.

Law: a URL that cannot be understood is never quoted, neither here nor by whoever asked: any piece of it may belong to
a password whose special characters are not percent-encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit


class NotUnderstoodUrlError(Exception):
    """Says nothing of the text."""


@dataclass(frozen=True, slots=True)
class Url:
    """``path`` has no slash at its ends. ``options``: the last value of each."""

    scheme: str
    host: str
    port: int | None
    path: str
    user: str = ""
    password: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse_url(text: str) -> Url:
    try:
        parts = urlsplit(text)
        port = parts.port
        options = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    # Its own message quotes the piece that it could not read.
    except ValueError:
        raise NotUnderstoodUrlError from None
    # An '@' this late, or a '#', comes from a password that was cut at a '/', '?' or '#' of its own.
    if not parts.scheme or "@" in parts.path + parts.query or parts.fragment:
        raise NotUnderstoodUrlError
    return Url(
        parts.scheme,
        parts.hostname or "",
        port,
        unquote(parts.path.strip("/")),
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        {name: values[-1] for name, values in options.items()},
    )


def has_stray_at(text: str) -> bool:
    """Whether a URL has an '@' behind its host: the rest of a password that was cut at a '/', '?' or '#'."""
    _, is_url, rest = text.partition("://")
    if not is_url:
        return False
    end = min((place for mark in "/?#" if (place := rest.find(mark)) >= 0), default=len(rest))
    return "@" in rest[end:]
