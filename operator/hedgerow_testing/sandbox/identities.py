"""Identities: kubeconfigs for users other than the administrator."""

from pathlib import Path
from urllib.parse import quote

from hedgerow_testing.sandbox.api import connect
from hedgerow_testing.sandbox.blueprint import Blueprint
from hedgerow_testing.sandbox.certificates import SandboxAuthority
from hedgerow_testing.sandbox.components import ADMIN
from hedgerow_testing.sandbox.directory import Directory
from hedgerow_testing.sandbox.kubeconfig import kubeconfig


def user(directory: Directory, blueprint: Blueprint, name: str, groups: tuple[str, ...]) -> Path:
    """Write a kubeconfig with a client certificate for this user and groups; return its path."""
    file = quote(name, safe="")
    pair = SandboxAuthority.load(directory.pki, "ca").client(
        directory.kubeconfigs, file, name, groups
    )
    files = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    return _write(directory, blueprint, file, files)


async def service_account(
    directory: Directory, blueprint: Blueprint, namespace: str, name: str, seconds: int
) -> Path:
    """Write a kubeconfig with a ServiceAccount's token from a TokenRequest; return its path.

    The token expires; the server grants at least ten minutes. Raises SandboxError if there is no
    such account.
    """
    authority, token = directory.pki / "ca.crt", blueprint.tokens[ADMIN]
    with connect(authority=authority, token=token, base=blueprint.server) as api:
        answer = await api.request(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": seconds},
            },
        )
    credentials = {"token": answer["status"]["token"]}
    return _write(directory, blueprint, quote(f"{namespace}.{name}", safe=""), credentials)


def _write(
    directory: Directory, blueprint: Blueprint, file: str, credentials: dict[str, str]
) -> Path:
    path = directory.kubeconfigs / f"{file}.kubeconfig"
    authority = directory.pki / "ca.crt"
    return kubeconfig(path, server=blueprint.server, authority=authority, user=credentials)
