"""Batches posted to a server.

Law: at least once, and never more is said: every interval is posted under a key of its own (``Idempotency-Key``), the
same one whenever it is posted again. A server that remembers the keys it has stored has every commit exactly once.
"""

from __future__ import annotations

import base64
import http.client
import ssl
from urllib.parse import quote, urlencode, urlsplit

from rollview.catalog import SubscriberRecord
from rollview.core.interval import Csn
from rollview.core.tls import is_here, system_certificates
from rollview.core.urls import NotUnderstoodUrlError, Url, parse_url
from rollview.errors import SinkDown, UsageError
from rollview.subscribers.batch import ChangeBatch
from rollview.subscribers.wire import about, encoded, rows_of

SECONDS = 60.0
"""How long a server is waited for."""
_ROOTS = "sslrootcert"
_PLAIN = "/%:@!$&'()*+,;="
"""What a path has as it is; what is percent-encoded stays so."""


class HttpSink:
    def __init__(self, name: str, address: str) -> None:
        self._name = name
        self._url = _parsed(name, address)
        self._path = _path(self._url, address)
        self._connection: http.client.HTTPConnection | None = None

    def held(self, subscriber: SubscriberRecord) -> Csn | None:
        """It cannot be asked: what it has not acknowledged comes again, under the same key."""
        return None

    def put(self, batch: ChangeBatch) -> None:
        body = encoded({**about(batch), "rows": list(rows_of(batch))})
        try:
            connection = self._open()
            connection.request("POST", self._path, body, self._headers(batch))
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise SinkDown(self._name, _reason(error)) from None
        if not 200 <= answer.status < 300:
            # A redirect is not followed: rows go where the address says, or nowhere.
            raise SinkDown(self._name, f"the server answers {answer.status} {answer.reason}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is None:
            url = self._url
            if url.scheme == "http":
                self._connection = http.client.HTTPConnection(url.host, url.port, timeout=SECONDS)
            else:
                context = _context(url.options.get(_ROOTS))
                self._connection = http.client.HTTPSConnection(url.host, url.port, timeout=SECONDS, context=context)
        return self._connection

    def _headers(self, batch: ChangeBatch) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Idempotency-Key": batch.identity, "User-Agent": "rollview"}
        if self._url.user:
            secret = f"{self._url.user}:{self._url.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(secret).decode()}"
        return headers


def _parsed(name: str, address: str) -> Url:
    try:
        url = parse_url(address)
    except NotUnderstoodUrlError:
        url = None
    if url is None or not url.host:
        raise UsageError(
            f"The address of subscriber '{name}' cannot be understood.",
            hint="Write https://host/path; special characters of a password are percent-encoded.",
        )
    if url.scheme == "http" and not is_here(url.host):
        raise UsageError(
            f"The server of subscriber '{name}' is not on this machine, and http:// does not show who it is.",
            hint=f"Write https://, and {_ROOTS}=PATH behind '?' where its certificate is not signed by somebody known.",
        )
    return url


def _path(url: Url, address: str) -> str:
    """As it was written, with the slash at its end: it is another path without."""
    own = {name: value for name, value in url.options.items() if name != _ROOTS}
    written = quote(urlsplit(address).path or "/", safe=_PLAIN)
    return written + (f"?{urlencode(own)}" if own else "")


def _context(roots: str | None) -> ssl.SSLContext:
    """The server shows a certificate for its name, signed by somebody the system or the address trusts."""
    context = ssl.create_default_context()
    known = roots or system_certificates()
    # Without a file of the system's, what Python itself found is all there is.
    if roots or known != "system":
        context.load_verify_locations(known)
    return context


def _reason(error: Exception) -> str:
    """Certificates are told in words; of other failures the kind, and what the system says."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    told = getattr(error, "strerror", None)
    return f"{type(error).__name__}: {told}" if told else type(error).__name__
