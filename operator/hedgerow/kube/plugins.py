"""Plugins: credentials that somebody else has to give, through kr8s; the only file that imports it.

These are exec plugins and auth providers. kr8s is not imported for any other credentials: that
takes a quarter of a second and 20 MiB. Its session factory, its version check and its cache of
instances are not used. The parts in use are checked by `tests/kube/test_kr8s_contract.py`, with
both ends of the range that `pyproject.toml` allows (`task versions`).
"""

from __future__ import annotations

import ssl
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

import anyio
from kr8s.asyncio import Api

from hedgerow.kube.credentials import LoginCredentials

if TYPE_CHECKING:
    from hedgerow.kube.kubeconfig import ClusterAccess
    from hedgerow_schemas.base import Object

_FILES = {
    "client-key": "client_key_file",
    "client-certificate": "client_cert_file",
    "certificate-authority": "server_ca_file",
}
"""The keys of a kubeconfig that name a file, and kr8s's attributes for the file that it reads."""


async def asked(access: ClusterAccess, limit: float) -> LoginCredentials:
    """Return the credentials that a plugin or a provider gives within `limit` seconds.

    Raises TimeoutError, and the errors of kr8s: ValueError, KeyError, RuntimeError, OSError,
    ImportError.
    """
    # Without an empty service account, kr8s would silently fall back to the pod's.
    api = Api(
        bypass_factory=True, kubeconfig=access.config, namespace=access.namespace, serviceaccount=""
    )
    cluster: Object = access.config["clusters"][0]["cluster"]
    user: Object = access.config["users"][0]["user"]
    own = {str(entry[key]) for entry in (cluster, user) for key in _FILES if key in entry}
    # Shielded, so that no private key is left in a file; not with a plugin, which may hang.
    with anyio.fail_after(limit, shield=not access.plugin):
        requests, watches = await _authenticate(api, own)
    return LoginCredentials(str(api.auth.token or ""), requests, watches)


async def _authenticate(api: Api, own: set[str]) -> list[ssl.SSLContext | bool]:
    """Load the credentials; return a TLS context for each channel, as transports modify it."""
    try:
        await api.auth.reauthenticate()
        contexts: list[ssl.SSLContext | bool] = [await api.auth.ssl_context() for _ in range(2)]
    finally:
        with anyio.CancelScope(shield=True):
            await _sweep(api, own)
    for context in contexts:
        if isinstance(context, ssl.SSLContext) and not api.auth.server_ca_file:
            context.load_default_certs()
    return contexts


async def _sweep(api: Api, own: set[str]) -> None:
    """Delete the files to which kr8s wrote credentials, including private keys.

    They are temporary files. The user's own files, which the kubeconfig names, stay.
    """
    place = gettempdir()
    for attribute in _FILES.values():
        path = getattr(api.auth, attribute)
        if path and str(path) not in own and Path(path).is_relative_to(place):
            await anyio.Path(path).unlink(missing_ok=True)
