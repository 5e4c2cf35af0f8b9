"""Components: the command line and the health address of each server of a sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hedgerow.encoding import encode
from hedgerow_testing.sandbox.blueprint import (
    API_SERVER,
    CONTROLLERS,
    ETCD,
    KWOK,
    PEER,
    Blueprint,
    Options,
)
from hedgerow_testing.sandbox.certificates import SandboxAuthority, signing_pair
from hedgerow_testing.sandbox.directory import Directory
from hedgerow_testing.sandbox.files import write
from hedgerow_testing.sandbox.kubeconfig import kubeconfig
from hedgerow_testing.sandbox.ports import LOOPBACK

ADMIN = "admin"
MASTERS = "system:masters"

USERS: Mapping[str, str] = {
    ADMIN: MASTERS,
    KWOK: MASTERS,
    **{f"system:{name}": "" for name in CONTROLLERS},
}
"""The users of the token file and their groups; controllers get rights from RBAC's own roles."""

STAGES = Path(__file__).parent / "modules" / "kwok" / "stages.yaml"

_SERVICES = "10.0.0.0/16"
_PODS = "10.244.0.0/16"
_WRITES = ["create", "update", "patch", "delete", "deletecollection"]
_LONGEST_AUDIT = 4096
"""Megabytes after which the server rotates the log; large, because readers want one file."""


@dataclass(frozen=True, slots=True)
class ComponentHealth:
    """A component's health endpoint, and the credentials for it."""

    url: str
    authority: str = "ca"
    client: str = ""
    token: str = ""


def write_configuration(directory: Directory, blueprint: Blueprint) -> None:
    """Write all files that the command lines below refer to."""
    pki = directory.pki
    authority, etcd = SandboxAuthority.create(pki, "ca"), SandboxAuthority.create(pki, "etcd-ca")
    authority.serving(pki, "serving")
    etcd.serving(pki, "etcd-server")
    etcd.client(pki, "etcd-client", "kube-apiserver")
    signing_pair(pki, "service-accounts")
    rows = [f'{blueprint.tokens[user]},{user},{user},"{group}"' for user, group in USERS.items()]
    write(directory.configuration / "tokens.csv", "\n".join(rows) + "\n")
    write(directory.configuration / "audit-policy.yaml", _policy(blueprint.options))
    for user in USERS:
        name = directory.kubeconfig if user == ADMIN else _kubeconfig_of(directory, user)
        user_token = {"token": blueprint.tokens[user]}
        kubeconfig(name, server=blueprint.server, authority=pki / "ca.crt", user=user_token)


def _policy(options: Options) -> str:
    """Return what the audit log has of each request: of writes the bodies."""
    level = "RequestResponse" if options.responses else "Request"
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": level, "verbs": _WRITES}, {"level": "Metadata"}],
    }
    return encode(policy, indent=2).decode()


def command(component: str, directory: Directory, blueprint: Blueprint) -> list[str | Path]:
    """Return a component's command line."""
    if component == ETCD:
        flags = _etcd(directory, blueprint)
    elif component == API_SERVER:
        flags = _api_server(directory, blueprint)
    elif component == KWOK:
        flags = _kwok(directory, blueprint)
    else:
        flags = _controller(component, directory, blueprint)
    listed = [f"--{name}={value}" for name, value in flags.items()]
    return [blueprint.binaries[component], *listed]


def health(component: str, blueprint: Blueprint) -> ComponentHealth:
    """Return the endpoint that answers 200 if the component is healthy."""
    address = f"https://{LOOPBACK}:{blueprint.ports[component]}"
    if component == ETCD:
        return ComponentHealth(f"{address}/health", authority="etcd-ca", client="etcd-client")
    if component == API_SERVER:
        return ComponentHealth(f"{address}/readyz", token=blueprint.tokens[ADMIN])
    return ComponentHealth(f"{address}/healthz")


def _etcd(directory: Directory, blueprint: Blueprint) -> dict[str, object]:
    client = f"https://{LOOPBACK}:{blueprint.ports[ETCD]}"
    peer = f"https://{LOOPBACK}:{blueprint.ports[PEER]}"
    pki = directory.pki
    secured = {
        "cert-file": pki / "etcd-server.crt",
        "key-file": pki / "etcd-server.key",
        "trusted-ca-file": pki / "etcd-ca.crt",
        "client-cert-auth": "true",
    }
    return {
        "data-dir": directory.etcd,
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "log-level": "warn",
        "unsafe-no-fsync": "true",
        **secured,
        **{f"peer-{name}": value for name, value in secured.items()},
    }


def _api_server(directory: Directory, blueprint: Blueprint) -> dict[str, object]:
    pki, options = directory.pki, blueprint.options
    flags: dict[str, object] = {
        "etcd-servers": f"https://{LOOPBACK}:{blueprint.ports[ETCD]}",
        "etcd-cafile": pki / "etcd-ca.crt",
        "etcd-certfile": pki / "etcd-client.crt",
        "etcd-keyfile": pki / "etcd-client.key",
        "bind-address": LOOPBACK,
        "advertise-address": LOOPBACK,
        # An Endpoints object may not contain a loopback address.
        "endpoint-reconciler-type": "none",
        "secure-port": blueprint.ports[API_SERVER],
        **_serving(pki),
        "cert-dir": pki,
        "client-ca-file": pki / "ca.crt",
        "token-auth-file": directory.configuration / "tokens.csv",
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": pki / "service-accounts.pub",
        "service-account-signing-key-file": pki / "service-accounts.key",
        "service-cluster-ip-range": _SERVICES,
        "allow-privileged": "true",
    }
    if options.audit:
        flags |= {
            "audit-policy-file": directory.configuration / "audit-policy.yaml",
            "audit-log-path": options.audit,
            "audit-log-mode": "blocking",
            "audit-log-maxsize": _LONGEST_AUDIT,
            "audit-log-maxbackup": 1,
        }
    return flags


def _controller(name: str, directory: Directory, blueprint: Blueprint) -> dict[str, object]:
    pki = directory.pki
    flags: dict[str, object] = {
        "kubeconfig": _kubeconfig_of(directory, f"system:{name}"),
        "bind-address": LOOPBACK,
        "secure-port": blueprint.ports[name],
        "leader-elect": "false",
        **_serving(pki),
    }
    if name == CONTROLLERS[0]:
        flags |= {
            "service-account-private-key-file": pki / "service-accounts.key",
            "root-ca-file": pki / "ca.crt",
            "use-service-account-credentials": "true",
            "kube-api-qps": 100,
            "kube-api-burst": 200,
        }
    return flags


def _kwok(directory: Directory, blueprint: Blueprint) -> dict[str, object]:
    return {
        "kubeconfig": _kubeconfig_of(directory, KWOK),
        "config": STAGES,
        "manage-all-nodes": "true",
        "cidr": _PODS,
        "node-ip": LOOPBACK,
        "node-lease-duration-seconds": 40,
        "server-address": f"{LOOPBACK}:{blueprint.ports[KWOK]}",
        **_serving(directory.pki),
    }


def _serving(pki: Path) -> dict[str, object]:
    return {"tls-cert-file": pki / "serving.crt", "tls-private-key-file": pki / "serving.key"}


def _kubeconfig_of(directory: Directory, user: str) -> Path:
    return directory.configuration / f"{user.removeprefix('system:')}.kubeconfig"
