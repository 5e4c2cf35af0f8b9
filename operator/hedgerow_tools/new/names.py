"""Names: what a new operator, its group, its kind and its children may be called."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from importlib.metadata import PackageNotFoundError, requires
from typing import TYPE_CHECKING

import hedgerow
from hedgerow.objects import PROGRAM, Installation
from hedgerow.plan.installations import OTHER_MANAGERS

if TYPE_CHECKING:
    from collections.abc import Iterable

CHILDREN = ("ConfigMap", "Deployment", "Service")
"""The kinds for which the templates have a function."""
LONGEST_GROUP = 180
"""A definition is named `<plural>.<group>`, which has at most 253 characters."""
LONGEST_KIND = 35
"""Lines of the templates with it are not longer than the formatter has them."""
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_GROUP = re.compile(rf"{_LABEL}(\.{_LABEL})+")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_KUBERNETES = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")
_IMPORTED = frozenset({"Any", "ClassVar", "CONTROLLER", "NOW", "UTC"})
_MISREAD = frozenset({"I", "O", "N", "No", "Null", "Off", "On", "Y", "Yes"})
"""What linters take for a digit, or YAML for another value than a text."""
_TAKEN = frozenset({PROGRAM, "conftest", "manifests", "tests", "wheels", *OTHER_MANAGERS})
"""Parts of the scaffold, packages that it uses, and field managers of every program."""
_PACKAGES = frozenset({"hatchling", "kubernetes", "pydantic", "yaml"})
"""Packages that may not be installed here, but with the scaffold or beside it."""


def package(name: str) -> str:
    """Return the name of a program and Python package; raises ValueError for one that is taken."""
    Installation(program=name)
    if keyword.iskeyword(name) or name in sys.stdlib_module_names | _PACKAGES | _TAKEN | _needed():
        raise ValueError(f"{name!r} is a reserved word of Python, or an existing package")
    return name


def _needed() -> frozenset[str]:
    """Return the packages that hedgerow itself imports: one of that name would be found instead."""
    try:
        lines = requires(PROGRAM) or ()
    except PackageNotFoundError:  # a source tree that is not installed
        return frozenset()
    names = {re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0].lower() for line in lines}
    return frozenset(name.replace("-", "_") for name in names)


def group(name: str) -> str:
    """Return an API group; raises ValueError for one that no custom resource may have."""
    if not _GROUP.fullmatch(name) or len(name) > LONGEST_GROUP:
        raise ValueError(
            f"{name!r} is no API group: a domain of yours, such as shop.example.com, in lower case,"
            f" at most {LONGEST_GROUP} characters"
        )
    if _KUBERNETES.fullmatch(name):
        raise ValueError(f"{name!r} is a group of the Kubernetes project: take a domain of yours")
    return name


def kind(name: str) -> str:
    """Return a kind; raises ValueError for one that will not do as the name of a class."""
    if not _KIND.fullmatch(name) or len(name) > LONGEST_KIND:
        raise ValueError(
            f"{name!r} is no kind: a capital letter, then letters and digits, such as Shop, at most"
            f" {LONGEST_KIND} characters"
        )
    taken = _IMPORTED.union(hedgerow.__all__, dir(builtins), keyword.kwlist)
    if name in taken:
        raise ValueError(f"{name!r} is a name of the library or of Python: take another kind")
    if name in _MISREAD:
        raise ValueError(f"{name!r} is misread, by YAML or as a digit: take another kind")
    return name


def children(names: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of the children in order, each once; raises ValueError if one is unknown."""
    chosen = [word for name in names for word in re.split(r"[,\s]+", name) if word]
    unknown = next((word for word in chosen if word not in CHILDREN), None)
    if unknown is not None:
        raise ValueError(f"{unknown!r} is no kind of child; there are: {', '.join(CHILDREN)}")
    if not chosen:
        raise ValueError(f"name at least one kind of child: {', '.join(CHILDREN)}")
    return tuple(name for name in CHILDREN if name in chosen)


def plural(kind: str) -> str:
    """Return the plural of a kind as English mostly has it, in lower case.

    Like Kubernetes's Endpoints, a kind in the plural stays as it is.
    """
    word = kind.lower()
    if re.search(r"(ss|us|is|alias|canvas|x|z|ch|sh)$", word):
        return f"{word}es"
    if word.endswith("s"):
        return word
    return re.sub(r"(?<=[^aeiou])y$", "ie", word) + "s"
