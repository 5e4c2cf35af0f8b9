"""Kubeconfig: the cluster and the credentials that kubectl would choose, or the pod's own.

The result is a single context with absolute paths. So the login does not need to handle several
files, merging and defaults.
"""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import msgspec
import yaml
from anyio import Path
from msgspec import Struct

from hedgerow.kube import wire
from hedgerow.kube.errors import ConfigError, NoCluster, one_line
from hedgerow.kube.pod import in_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hedgerow_schemas.base import Object

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_CLUSTER = ("server", "insecure-skip-tls-verify", "tls-server-name", "proxy-url")
_USER = ("token", "username", "password")
_SENT = (*_USER, "tokenFile", "exec", "auth-provider")
"""The credentials that are sent in headers; a client certificate is only used with TLS."""
_BASE = "/directory"
"""The key under which an entry keeps its file's directory; no kubeconfig key has a slash."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How to reach one cluster as one user.

    `config` is a kubeconfig with one context, as kr8s reads it. `token_file` has priority over its
    token.
    """

    config: Object = field(repr=False)
    context: str
    namespace: str
    token_file: Path | None = None
    plugin: bool = False
    install_hint: str = ""


class _Merged(Struct, frozen=True):
    """All files merged; as in kubectl, the first file that defines an entry wins."""

    origin: str
    current: str = ""
    entries: Mapping[str, dict[str, Object]] = msgspec.field(
        default_factory=lambda: {section: {} for section in _SECTIONS}
    )


async def choose(kubeconfig: str | None = None, context: str | None = None) -> ClusterAccess:
    """Return what kubectl would use: the given file, `$KUBECONFIG`, `~/.kube/config`, or the pod's.

    Raises ConfigError, in one line with the remedy, if none of them can be used.
    """
    named = [kubeconfig] if kubeconfig else _usual()
    paths = [await (await Path(part).expanduser()).absolute() for part in named]
    existing = [path for path in paths if await path.exists()]
    if kubeconfig and not existing:
        raise ConfigError(f"kubeconfig {paths[0]} does not exist; name another file")
    merged = _merge([(path, await _load(path)) for path in existing])
    if not merged.entries["contexts"] and not kubeconfig and not context:
        return await _in_cluster()
    return await _pick(merged, context)


def _usual() -> list[str]:
    named = os.environ.get("KUBECONFIG") or "~/.kube/config"
    return [part for part in named.split(os.pathsep) if part]


async def _load(path: Path) -> Object:
    try:
        document = yaml.safe_load(await path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"kubeconfig {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Not the parser's own message: it quotes the line, which may contain a credential.
        mark = getattr(error, "problem_mark", None)
        where = f", see line {mark.line + 1}" if mark else ""
        raise ConfigError(f"kubeconfig {path} is no YAML{where}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is no kubeconfig: it holds no map of settings")
    return cast("Object", document)


def _merge(documents: Sequence[tuple[Path, Object]]) -> _Merged:
    merged = _Merged(
        origin=f"kubeconfig {', '.join(str(path) for path, _ in documents) or '(none found)'}",
        current=next((str(name) for _, d in documents if (name := d.get("current-context"))), ""),
    )
    for path, document in documents:
        for section, key in _SECTIONS.items():
            for name, entry in _named(path, document.get(section), section, key):
                merged.entries[section].setdefault(name, {**entry, _BASE: path.parent})
    return merged


def _named(path: Path, listed: Any, section: str, key: str) -> Iterable[tuple[str, Object]]:
    try:
        for item in listed or ():
            yield str(item["name"]), {**(item.get(key) or {})}
    except (AttributeError, KeyError, TypeError) as error:
        raise ConfigError(
            f"kubeconfig {path}: {section} must be a list of items with name and {key}"
        ) from error


async def _pick(merged: _Merged, context: str | None) -> ClusterAccess:
    name = context or merged.current
    # In a pod nobody types an option: whoever mounts the file says there which context it is.
    is_mounted = in_pod() and not context
    hint = "set its current-context" if is_mounted else "choose one with --context"
    chosen = _entry(merged, "contexts", name, hint=hint)
    cluster = _entry(merged, "clusters", str(chosen.get("cluster", "")))
    named = chosen.get("user")
    user = _entry(merged, "users", str(named)) if named else {_BASE: cluster[_BASE]}
    token_file = user.get("tokenFile")
    _refuse_plain(merged, name, str(cluster.get("server", "")), user)
    return ClusterAccess(
        config=_single(name, await _cluster(merged, cluster), await _user(merged, user, cluster)),
        context=name,
        namespace=str(chosen.get("namespace") or "default"),
        token_file=await _existing(merged, user, "tokenFile") if token_file else None,
        plugin=bool(user.get("exec")),
        install_hint=one_line(str(_map(user.get("exec")).get("installHint", ""))),
    )


def _refuse_plain(merged: _Merged, context: str, server: str, user: Object) -> None:
    """Raise ConfigError for credentials without TLS, which others could read on the network."""
    if server.startswith("http://") and any(user.get(key) for key in _SENT):
        raise ConfigError(
            f"{merged.origin}: context {context!r} has credentials, which are not sent to {server}"
            " in plain text; use https://, or a context without a user"
        )


def _entry(merged: _Merged, section: str, name: str, hint: str = "") -> Object:
    entries = merged.entries[section]
    if name in entries:
        return entries[name]
    noun = _SECTIONS[section]
    has = f"it has {', '.join(entries)}" if entries else f"it has no {section}"
    hint = hint if entries else "name another file with --kubeconfig or $KUBECONFIG"
    wanted = f"has no {noun} {name!r}" if name else f"does not say which {noun} to use"
    raise ConfigError("; ".join(part for part in (f"{merged.origin} {wanted}", has, hint) if part))


async def _cluster(merged: _Merged, cluster: Object) -> Object:
    server = str(cluster.get("server", ""))
    if not server.startswith(("https://", "http://")):
        raise ConfigError(f"{merged.origin}: server {server!r} must begin with https:// or http://")
    return {
        **{key: cluster[key] for key in _CLUSTER if cluster.get(key)},
        **await _credential(merged, cluster, "certificate-authority"),
    }


async def _user(merged: _Merged, user: Object, cluster: Object) -> Object:
    kept: Object = {key: user[key] for key in _USER if user.get(key)}
    kept |= await _credential(merged, user, "client-certificate")
    kept |= await _credential(merged, user, "client-key")
    if user.get("exec"):
        kept["exec"] = _plugin(merged, _map(user["exec"]), user[_BASE], cluster)
    if provider := _map(user.get("auth-provider")):
        token = str(_map(provider.get("config")).get("id-token", ""))
        kept["auth-provider"] = {"name": provider.get("name"), "config": {"id-token": token}}
    return kept


async def _credential(merged: _Merged, entry: Object, key: str) -> Object:
    """Return the file or the inline data under `key`; inline data wins, as in kubectl."""
    inline = f"{key}-data"
    if entry.get(inline):
        try:
            base64.b64decode(str(entry[inline]), validate=False)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"{merged.origin}: {inline} is no base64: {error}") from error
        return {inline: str(entry[inline])}
    return {key: str(await _existing(merged, entry, key))} if entry.get(key) else {}


async def _existing(merged: _Merged, entry: Object, key: str) -> Path:
    """Return a path relative to the kubeconfig's directory, as kubectl does; raises ConfigError."""
    path: Path = entry[_BASE] / await Path(str(entry[key])).expanduser()
    if not await path.is_file():
        raise ConfigError(f"{merged.origin}: {key} {path} does not exist")
    return path


def _plugin(merged: _Merged, plugin: Object, base: Path, cluster: Object) -> Object:
    """Return an exec plugin's configuration with its `KUBERNETES_EXEC_INFO` (KEP-541)."""
    version, command = plugin.get("apiVersion"), plugin.get("command")
    if not version or not command:
        raise ConfigError(f"{merged.origin}: exec needs apiVersion and command")
    spec: Object = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        shown = (*_CLUSTER, "certificate-authority-data")
        spec["cluster"] = {key: cluster[key] for key in shown if cluster.get(key)}
    info: Object = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    named = [_map(item) for item in plugin.get("env") or ()]
    env = [{"name": str(item.get("name")), "value": str(item.get("value", ""))} for item in named]
    env.append({"name": "KUBERNETES_EXEC_INFO", "value": wire.encode(info).decode()})
    return {
        "apiVersion": str(version),
        "command": str(base / str(command)) if os.sep in str(command) else str(command),
        "args": [str(arg) for arg in plugin.get("args") or ()],
        "env": env,
    }


async def _in_cluster() -> ClusterAccess:
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    token = SERVICE_ACCOUNT / "token"
    if in_pod() and not await token.is_file():
        raise ConfigError(
            f"no cluster to talk to: this pod has no token of a ServiceAccount at {token}; set"
            " automountServiceAccountToken, or name a kubeconfig that it mounts with $KUBECONFIG"
        )
    if not host or not port or not await token.is_file():
        raise NoCluster(
            f"no cluster to talk to: there is no kubeconfig at "
            f"{', '.join(_usual())}, and this is no pod; "
            "name one with --kubeconfig or $KUBECONFIG"
        )
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    cluster: Object = {"server": f"https://{address}"}
    authority = SERVICE_ACCOUNT / "ca.crt"
    if await authority.is_file():
        cluster["certificate-authority"] = str(authority)
    try:
        namespace = await (SERVICE_ACCOUNT / "namespace").read_text("utf-8")
    except OSError:
        namespace = ""
    return ClusterAccess(
        config=_single("in-cluster", cluster, {}),
        context="in-cluster",
        namespace=namespace.strip() or "default",
        token_file=token,
    )


def _single(name: str, cluster: Object, user: Object) -> Object:
    return {
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }


def _map(value: Any) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}
