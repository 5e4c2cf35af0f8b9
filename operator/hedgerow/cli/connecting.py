"""Connecting: which cluster a command is about, as kubectl takes it, and the way there."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from hedgerow.cli.options import OptionSet, duration, extended
from hedgerow.cli.program import program_name
from hedgerow.version import user_agent

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from hedgerow.kube.cluster import Cluster

_PATIENCE: Final = "60s"
_LONGEST: Final = 7 * 24 * 3600.0
_PANEL: Final = "Which cluster"


def _option(*names: str, metavar: str, words: str, default: str | bool) -> Any:
    return typer.Option(
        *names, metavar=metavar, help=words, show_default=default, rich_help_panel=_PANEL
    )


_kubeconfig = _option(
    metavar="FILE", words="Kubeconfig to use.", default="$KUBECONFIG, ~/.kube/config"
)
_context = _option(metavar="NAME", words="Context to use.", default="current")
_request_timeout = _option(
    metavar="DURATION",
    words="How long one request may take, as for kubectl: 30s, 2m; 0 is the longest, a week.",
    default=True,
)
_namespace = _option(
    "--namespace", "-n", metavar="NAMESPACE", words="The namespace.", default="the context's"
)
_CLUSTER: OptionSet = {
    "kubeconfig": (Annotated[str | None, _kubeconfig], None),
    "context": (Annotated[str | None, _context], None),
    "request_timeout": (Annotated[str, _request_timeout], _PATIENCE),
}
_NAMESPACE: OptionSet = {"namespace": (Annotated[str | None, _namespace], None)}


class ClusterChoice(NamedTuple):
    """The cluster and the namespace that were named, and the seconds for each request."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    patience: float = 0


_NONE: Final = ClusterChoice()
_chosen: Final = ContextVar("cluster", default=_NONE)


def chosen_cluster() -> ClusterChoice:
    """Return what the command that runs was told of its cluster."""
    return _chosen.get()


def elsewhere(namespace: object) -> str:
    """Return why an object of a file, in this namespace, is not meant; empty if it is.

    As for kubectl, -n is about all objects: one that names another namespace is refused.
    """
    given = chosen_cluster().namespace
    if not given or namespace in (None, "", given):
        return ""
    return (
        f"it names the namespace {namespace}, and -n names {given}: kubectl refuses that too; name"
        " the same one, or none"
    )


def of_cluster(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options that choose a cluster, which `connected` reads."""
    return _with_options(command, _CLUSTER)


def of_namespace(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options that choose a cluster, and in it a namespace."""
    return _with_options(command, {**_NAMESPACE, **_CLUSTER})


def _with_options(command: Callable[..., None], options: OptionSet) -> Callable[..., None]:
    def run(**given: Any) -> None:
        named = {name: given.pop(name) for name in options}
        if named.get("namespace") and given.get("all_namespaces"):
            raise typer.BadParameter("--namespace and --all-namespaces exclude each other")
        timeout = named.pop("request_timeout")
        patience = duration("--request-timeout", timeout, _LONGEST) or _LONGEST
        token = _chosen.set(ClusterChoice(**named, patience=patience))
        try:
            command(**given)
        finally:
            _chosen.reset(token)

    return extended(command, run, options)


def connected(
    purpose: str = "", choice: ClusterChoice | None = None
) -> AbstractAsyncContextManager[Cluster]:
    """Log in; the API server's logs name the version, and `purpose` where there is one.

    What is logged from now on goes to standard error, for people: the output is the command's own.
    """
    from hedgerow.kube.client import connect  # noqa: PLC0415 - not needed for the help
    from hedgerow.runtime import logs  # noqa: PLC0415 - as above

    logs.configure("human")
    agent = user_agent(program_name(), purpose)
    return connect(**(choice or chosen_cluster())._asdict(), user_agent=agent)
