"""Commands: a page for every command, from the command line itself."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from typer.main import get_command

from hedgerow.cli import app
from hedgerow.cli.commands import LAZY
from website.markdown import code, definitions, prose

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY = "reference/commands"
ROOT = "hedgerow"
_ARGUMENTS, _OPTIONS = "Arguments", "Options"


@cache
def commands() -> dict[str, Any]:
    """Return every command by what is typed for it, the groups among them, without the root."""
    root = get_command(app)
    own = {name: root.commands[name] for name in root.commands if name not in LAZY}
    loaded = {name: lazy.load(name) for name, lazy in LAZY.items()}
    return {
        path: command
        for name, top in (loaded | own).items()
        for path, command in _below(f"{ROOT} {name}", top)
    }


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _below(f"{path} {name}", below)


def place(path: str) -> str:
    """Return the page of a command."""
    name = path.removeprefix(f"{ROOT} ").replace(" ", "-")
    return f"{DIRECTORY}/{name}.md"


@cache
def pages() -> dict[str, str]:
    """Return the pages by their places."""
    known = commands()
    made = {place(path): _page(path, known[path], known) for path in known}
    return made | {f"{DIRECTORY}/index.md": _overview(known)}


def _overview(known: dict[str, Any]) -> str:
    root = get_command(app)
    listed = definitions(
        (f"[{code(path)}]({_name(path)})", prose(_first_line(command)))
        for path, command in known.items()
    )
    return "\n\n".join(
        ["# Commands, one by one", prose(root.help), listed, "## Options of every command",
         _parameters(root, _OPTIONS), prose(root.epilog)]
    )  # fmt: skip


def _name(path: str) -> str:
    return place(path).rpartition("/")[2]


def _first_line(command: Any) -> str:
    return (command.help or "").strip().partition("\n\n")[0]


def _page(path: str, command: Any, known: dict[str, Any]) -> str:
    context = type(command).context_class(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    parts = [f"# {path}", prose(command.help or ""), f"```sh\n{usage}\n```"]
    below = [one for one in known if one.rpartition(" ")[0] == path]
    if below:
        told = ((f"[{code(one)}]({_name(one)})", prose(_first_line(known[one]))) for one in below)
        parts += ["## Commands", definitions(told)]
    for panel in _panels(command):
        parts += [f"## {panel}", _parameters(command, panel)]
    if command.epilog:
        parts.append(prose(command.epilog))
    return "\n\n".join(parts)


def _panels(command: Any) -> list[str]:
    """Return the headings under which a command's help has parameters, in its order."""
    found = defaultdict[str, int](int)
    for parameter in shown(command):
        found[_panel(parameter)] += 1
    return sorted(found, key=lambda panel: [_ARGUMENTS, _OPTIONS].index(panel)
                  if panel in {_ARGUMENTS, _OPTIONS} else len(found) + 2)  # fmt: skip


def shown(command: Any) -> list[Any]:
    """Return the parameters that a command's help shows."""
    return [one for one in command.params if not getattr(one, "hidden", False)]


def _panel(parameter: Any) -> str:
    named = getattr(parameter, "rich_help_panel", None)
    return named or (_ARGUMENTS if parameter.param_type_name == "argument" else _OPTIONS)


def _parameters(command: Any, panel: str) -> str:
    return definitions(
        (_term(one), _meaning(one)) for one in shown(command) if _panel(one) == panel
    )


def _term(parameter: Any) -> str:
    """Return how a parameter is written, the one-letter form first."""
    if parameter.param_type_name == "argument":
        return code(parameter.metavar or parameter.name.upper())
    names = sorted([*parameter.opts, *parameter.secondary_opts], key=lambda name: name[:2] == "--")
    value = "" if parameter.is_flag else f" {parameter.metavar or _value(parameter)}"
    return ", ".join(code(name + value * (name == names[-1])) for name in names)


def _value(parameter: Any) -> str:
    """Return what a parameter takes, as its help shows it."""
    found = _choices(parameter.type_descriptor.annotation)
    return "|".join(map(str, found)) or parameter.type_descriptor.annotation.__name__.upper()


def _choices(annotation: Any) -> list[Any]:
    """Return the values among which a parameter of this type chooses; none if it takes any."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def _meaning(parameter: Any) -> str:
    told = [prose(parameter.help or "")]
    if default := _default(parameter):
        told.append(f"Default: {default}.")
    if parameter.envvar:
        told.append(f"Environment: {code(parameter.envvar)}.")
    if parameter.param_type_name == "option" and parameter.required:
        told.append("Required.")
    return " ".join(filter(None, told))


def _default(parameter: Any) -> str:
    if isinstance(parameter.show_default, str):
        return prose(parameter.show_default)
    value = parameter.default
    is_said = parameter.show_default and value not in (None, "", False, []) and not callable(value)
    return code(str(value)) if is_said else ""
