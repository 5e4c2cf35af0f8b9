"""Credentials: the parts of a login, and the bearer token, read again when its file is rotated."""

from __future__ import annotations

import base64
import ssl
from contextlib import ExitStack
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    import anyio

    from hedgerow.kube.kubeconfig import ClusterAccess
    from hedgerow_schemas.base import Object

GIVEN_BY_OTHERS = frozenset({"exec", "auth-provider", "username", "password"})
"""Entries of a kubeconfig's user for which a plugin or a provider must be asked, or which are no
longer supported."""


class LoginCredentials(NamedTuple):
    """How to log in.

    `requests` and `watches` are the TLS of the two channels, or whether certificates are verified.
    """

    token: str
    requests: ssl.SSLContext | bool
    watches: ssl.SSLContext | bool


def written(access: ClusterAccess) -> LoginCredentials | None:
    """Return the credentials that are written in the kubeconfig; None if others must give them.

    Raises OSError or ValueError if a certificate or a key cannot be used.
    """
    cluster: Object = access.config["clusters"][0]["cluster"]
    user: Object = access.config["users"][0]["user"]
    if GIVEN_BY_OTHERS & user.keys():
        return None
    token = str(user.get("token") or "")
    return LoginCredentials(token, _tls(cluster, user), _tls(cluster, user))


def _tls(cluster: Object, user: Object) -> ssl.SSLContext | bool:
    """Return the TLS context for a server, or True for the usual one.

    OpenSSL reads files only: inline data is written to a temporary one meanwhile.
    """
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    with ExitStack() as stack:
        authority = _file(stack, cluster, "certificate-authority")
        certificate = _file(stack, user, "client-certificate")
        key = _file(stack, user, "client-key")
        if not (authority or certificate or key or insecure):
            return True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate and key:
            context.load_cert_chain(certificate, key)
        if authority:
            context.load_verify_locations(cafile=authority)
        else:
            context.load_default_certs()
    return context


def _file(stack: ExitStack, entry: Object, name: str) -> str:
    """Return the file of an entry; for inline data one that nobody else may read.

    It is deleted with the stack. Inline data is PEM, or base64 of it.
    """
    inline = str(entry.get(f"{name}-data") or "")
    if not inline:
        return str(entry.get(name) or "")
    file = stack.enter_context(NamedTemporaryFile(prefix="hedgerow-"))  # noqa: SIM115 - the stack does
    file.write(inline.encode() if "-----" in inline else base64.b64decode(inline))
    file.flush()
    return file.name


EVERY = 60.0
"""Seconds between two reads of the file; the kubelet renews it well before a token expires."""


class Bearer:
    """The bearer token of a login: that of a file, or a fixed one, or none.

    If the file cannot be read for a moment, the last token is used.
    """

    def __init__(
        self, token: str = "", file: anyio.Path | None = None, *, now: Callable[[], float]
    ) -> None:
        self._token = token
        self._file = file
        self._now = now
        self._due = now() + EVERY

    async def token(self) -> str:
        """Return the token for the next request; empty if there is none."""
        if self._file is not None and self._now() >= self._due:
            self._due = self._now() + EVERY
            self._token = await read_token(self._file) or self._token
        return self._token


async def read_token(file: anyio.Path) -> str:
    """Return the token in `file`; empty if it cannot be read."""
    try:
        return (await file.read_text("ascii")).strip()
    except (OSError, ValueError):
        return ""
