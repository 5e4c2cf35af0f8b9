"""Errors: turns every error that can reach the user into one line with its remedy and exit code."""

from __future__ import annotations

import os
from typing import Any, cast

import typer
from pydantic import ValidationError

from hedgerow.cli.commands import LAZY
from hedgerow.cli.exits import COMMAND_PATH, CommandError, Exit
from hedgerow.cli.program import registry
from hedgerow.cli.targets import not_installed
from hedgerow.errors import OneLineError
from hedgerow.kube import errors as kube
from hedgerow.kube.errors import discovery_of
from hedgerow.kube.pod import in_pod
from hedgerow.objects import PROGRAM, renamed
from hedgerow.texts import escaped
from hedgerow.validation import field_errors, in_a_line

LONGEST = 10_000
"""The most characters of an error."""
_SANDBOX = (
    'for a throwaway one: `hedgerow sandbox up --nodes 1`, then `eval "$(hedgerow sandbox env)"`'
)
_REMEDIES: tuple[tuple[type[kube.KubeError], Exit, str], ...] = (
    (kube.NoCluster, Exit.USAGE, _SANDBOX),
    (kube.ConfigError, Exit.USAGE, ""),
    (
        kube.Untrusted,
        Exit.NO_CLUSTER,
        "the kubeconfig's certificate-authority is not the one of this server",
    ),
    (
        kube.Unreachable,
        Exit.NO_CLUSTER,
        "check that the cluster is up, or choose another one with --context or --kubeconfig",
    ),
    (
        kube.Unauthenticated,
        Exit.NO_CLUSTER,
        "log in again, or choose another user with --context",
    ),
    (
        kube.Forbidden,
        Exit.FAILED,
        "ask for the right, or choose another user with --context",
    ),
    (kube.Missing, Exit.FAILED, "run `hedgerow install` if the kind is one of hedgerow's own"),
    (kube.Throttled, Exit.FAILED, "the server has too much to do; try again later"),
    (kube.KubeError, Exit.FAILED, "--debug shows where it happened"),
)
_IN_POD: tuple[tuple[type[kube.KubeError], str], ...] = (
    (
        kube.Untrusted,
        "its ServiceAccount's ca.crt, or the kubeconfig's, is not the authority of this server",
    ),
    (
        kube.Unreachable,
        "check that the API server is up, and that NetworkPolicies and DNS let this pod reach it",
    ),
    (
        kube.Unauthenticated,
        "check that the ServiceAccount or the kubeconfig's user exists; a new pod has a new token",
    ),
    (
        kube.Forbidden,
        "bind a role that grants it to the ServiceAccount, or to the kubeconfig's user",
    ),
)
"""What to do in a pod, where nobody logs in or chooses a context; it may mount a kubeconfig."""


def explain(error: BaseException, program: str = PROGRAM, command: str = "") -> tuple[str, int]:
    """Return an error as one line with its remedy, and the exit code that goes with it.

    Where a component failed, the last lines of its log follow: the notes of an error with
    `notes_are_log`.
    What it tells to run is a command of the `program`, which is called by `command`.
    """
    cause = _first(error)
    if isinstance(cause, CommandError):
        return escaped(str(cause)), cause.exit_code
    line, code = _explained(cause, program, command or program)
    raised_by = LAZY.get(getattr(error, COMMAND_PATH, "").rpartition(" ")[2])
    if raised_by and code == Exit.USAGE:
        code = raised_by.usage
    has_log = getattr(cause, "notes_are_log", False)
    notes: list[str] = getattr(cause, "__notes__", []) if has_log else []
    return "\n".join([kube.one_line(line, LONGEST), *(f"  | {note}" for note in notes)]), code


def _explained(error: BaseException, program: str, command: str) -> tuple[str, Exit]:
    match error:
        case typer.Abort():
            return "interrupted", Exit.INTERRUPTED
        case OneLineError():
            return str(error), Exit.FAILED
        case kube.Missing() if not error.served and (absent := _absent(error, command)):
            return f"{absent}; {error}", Exit.FAILED
        case kube.KubeError():
            code, remedy = _remedy(error)
            line = f"{error}; {renamed(remedy, program, command)}" if remedy else str(error)
        case ValidationError():
            line, code = _setting(error, program), Exit.USAGE
        case OSError(filename=str(name)) if name:
            line, code = (
                f"{name}: {error.strerror}; check that it exists and that you may use it",
                Exit.FAILED,
            )
        case _ if hasattr(error, "format_message"):
            line, code = _usage(error, command), Exit.USAGE
        case _:
            text = f"{type(error).__name__}: {error}"
            line, code = f"{text}; this is a mistake in {program}: --debug shows where", Exit.FAILED
    return line, code


def _remedy(error: kube.KubeError) -> tuple[Exit, str]:
    """Return the exit code and what to do, as far as it can be done here."""
    code, remedy = next((c, r) for kind, c, r in _REMEDIES if isinstance(error, kind))
    if isinstance(error, kube.NoCluster) and not LAZY["sandbox"].is_installed:
        remedy = ""
    if isinstance(error, kube.Missing) and error.request:
        remedy = ""  # it names another kind, or an object
    if in_pod():
        remedy = next((r for kind, r in _IN_POD if isinstance(error, kind)), remedy)
    return code, remedy


def _absent(error: kube.Missing, command: str) -> str:
    """Return that a kind of ours is not installed, if the request was about one, else nothing."""
    words = error.request.partition(" ")[2].split("/")
    group, rest = words[2:4], words[4:]
    # The path of one namespace begins alike: .../namespaces/NAME/PLURAL.
    plural = rest[2:3] if rest[:1] == ["namespaces"] and rest[2:] else rest[:1]
    for controller in registry().controllers:
        api = controller.resource.api
        asked = [api.group, api.version, api.plural]
        named = error.request == discovery_of(api.kind, api.group_version)
        if controller.is_custom and (named or [*group, *plural] == asked):
            return not_installed(controller, command)
    return ""


def _first(error: BaseException) -> BaseException:
    """Return the first error in a group: several tasks may fail, but one failed first."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _setting(error: ValidationError, program: str) -> str:
    """Return the message for a refused setting, in terms of the command line."""
    from hedgerow.settings import flags  # noqa: PLC0415 - most errors are of other commands

    first = next(field_errors(error))
    entry = flags().get(first.field.partition("[")[0])
    if entry is None:
        named = (
            flag.variable(program)
            for _, flag in flags().values()
            if f"{flag.long} " in first.detail
        )
        return first.detail + "".join(map(environment, named))
    flag = entry[1]
    takes = f"takes {flag.takes}" if flag.takes else first.detail
    return f"{first.value!r} is not valid: {flag.long} {takes}{environment(flag.variable(program))}"


def _usage(error: Any, called: str) -> str:
    """Return a usage error of the command line library in one line."""
    context = getattr(error, "ctx", None)
    path: str = getattr(error, COMMAND_PATH, called)
    command = context.command_path if context else path
    if isinstance(error.__cause__, ValidationError):
        error.message = in_a_line(error.__cause__)
    message = error.format_message().rstrip(".")
    message += environment(getattr(getattr(error, "param", None), "envvar", None))
    return f"{message}; see `{command} --help`"


def environment(variable: str | None) -> str:
    """Return a note that an environment variable is set, as the value may come from it."""
    return f" ({variable} is set)" if variable and os.environ.get(variable) else ""
