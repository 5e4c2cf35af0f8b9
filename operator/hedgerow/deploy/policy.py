"""Policy: an admission policy that keeps the operator's account from taking others' fields.

It is written by hand in `policy.yaml`, because its comments belong to its expressions.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from hedgerow.deploy import admission_policies
from hedgerow.deploy.manifest import from_yaml
from hedgerow.deploy.names import Names
from hedgerow.objects import renamed

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object


def text(names: Names) -> str:
    """Return the policy with its comments, for the account of an installation."""
    written = resources.files("hedgerow.deploy").joinpath("policy.yaml").read_text("utf-8")
    called, plain = renamed(written, names.program), Names(program=names.program)
    return called.replace(plain.user, names.user).replace(_name(plain), _name(names))


def policy(names: Names) -> Object:
    """Return the policy as an object."""
    [admission_policy] = from_yaml(text(names))
    return admission_policy


def binding(names: Names) -> Object:
    """Return the policy's binding."""
    return admission_policies.binding(names, _name(names))


def _name(names: Names) -> str:
    return f"{names.base}-fields-have-owners"
