"""Whether a server is on this machine, and how a PostgreSQL server that is not shows who it is.

Law: a server that is not certainly on this machine shows a certificate for its name, signed by somebody the system
trusts, unless the address itself asks for less.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_SYSTEM = "system"
_ABOUT_TLS = ("certificate", "ssl ", "tls ")
_WAY = "its certificate is checked; the address may name who signed it (sslrootcert=PATH), or ask for less (sslmode=…)"


def is_here(host: str) -> bool:
    """Whether the name can only mean this machine: a socket, ``localhost`` or a loopback address."""
    if host.startswith(("/", "@")) or host.lower() in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def postgres_tls(given: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """What is added to the parameters of a connection. The driver reads ``environment`` where they say nothing."""
    said = {name: str(value) for name, value in given.items() if value not in (None, "")}
    roots = said.get("sslrootcert") or environment.get("PGSSLROOTCERT")
    if "sslmode" in said:
        return {"sslrootcert": system_certificates()} if (said["sslmode"], roots) == ("verify-full", _SYSTEM) else {}
    if roots not in (None, "", _SYSTEM):
        return {} if _all_here(said, environment) else {"sslmode": "verify-full"}
    if roots != _SYSTEM and _all_here(said, environment):
        return {}
    return {"sslmode": "verify-full", "sslrootcert": system_certificates()}


def system_certificates() -> str:
    """The file with the certificates that the system trusts. A driver that brings its own OpenSSL, as psycopg's binary
    package does, looks for them in a folder that no system has."""
    told = ssl.get_default_verify_paths().cafile
    places = (place for place in (told, *_BUNDLES) if place and Path(place).is_file())
    return next(places, _SYSTEM)


def with_advice(reason: str) -> str:
    """What a driver says, and what to do where it is about a certificate."""
    return f"{reason} ({_WAY})" if any(word in reason.lower() for word in _ABOUT_TLS) else reason


def _all_here(said: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    # A service is a file that may name any host.
    if said.get("service") or environment.get("PGSERVICE"):
        return False
    return all(map(is_here, _hosts(said, environment)))


def _hosts(said: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[str]:
    """Both the names and the addresses: where both are given, the driver goes to the address."""
    for parameter, variable in (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR")):
        yield from (host.strip() for host in (said.get(parameter) or environment.get(variable) or "").split(","))
