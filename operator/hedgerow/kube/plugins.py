"""Plugins: credentials that somebody else has to give, through kr8s; the only file that imports it.

These are exec plugins and auth providers. kr8s is not imported for any other credentials: that
takes a quarter of a second and 20 MiB. Its session factory, its version check and its cache of
instances are not used. Some of this reads private attributes, so kr8s is pinned to an exact version
and checked by `tests/kube/test_kr8s_contract.py`.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import anyio
from kr8s.asyncio import Api

from hedgerow.kube.credentials import LoginCredentials

if TYPE_CHECKING:
    from hedgerow.kube.kubeconfig import ClusterAccess

_TEMPORARY = {
    "client-key-data": ("_user", "client_key_file"),
    "client-certificate-data": ("_user", "client_cert_file"),
    "certificate-authority-data": ("_cluster", "server_ca_file"),
}


async def asked(access: ClusterAccess, limit: float) -> LoginCredentials:
    """Return the credentials that a plugin or a provider gives within `limit` seconds.

    Raises TimeoutError, and what kr8s raises: ValueError, KeyError, RuntimeError, OSError,
    ImportError.
    """
    # Without an empty service account, kr8s would silently fall back to the pod's.
    api = Api(
        bypass_factory=True, kubeconfig=access.config, namespace=access.namespace, serviceaccount=""
    )
    # Shielded, so that no private key is left in a file; not with a plugin, which may hang.
    with anyio.fail_after(limit, shield=not access.plugin):
        requests, watches = await _authenticate(api)
    auth = api.auth
    token = str(auth.token or "")
    return LoginCredentials(auth.server, token, auth.tls_server_name, auth.proxy, requests, watches)


async def _authenticate(api: Api) -> list[ssl.SSLContext | bool]:
    """Load the credentials; return a TLS context for each channel, as transports modify it."""
    try:
        await api.auth.reauthenticate()
        contexts: list[ssl.SSLContext | bool] = [await api.auth.ssl_context() for _ in range(2)]
    finally:
        with anyio.CancelScope(shield=True):
            await _sweep(api)
    for context in contexts:
        if isinstance(context, ssl.SSLContext) and not api.auth.server_ca_file:
            context.load_default_certs()
    return contexts


async def _sweep(api: Api) -> None:
    """Delete the files to which kr8s wrote inline credentials, including private keys."""
    for key, (section, attribute) in _TEMPORARY.items():
        path = getattr(api.auth, attribute)
        if path and key in getattr(api.auth, section):
            await anyio.Path(path).unlink(missing_ok=True)
