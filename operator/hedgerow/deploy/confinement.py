"""Confinement: an admission policy that limits the operator's account to children of its resources.

On other objects, it may only apply as the field manager of a controller that claims fields there.

A right to write Deployments everywhere is a right to everything: with the account's token, somebody
could run a privileged pod in any namespace. RBAC cannot express "children of a BlueGreen"; the API
server's admission policies can.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hedgerow.deploy.names import CHILDREN, Names
from hedgerow.objects import Installation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import ApiResource, Object, Resource, View

VERSION = "admissionregistration.k8s.io/v1"
SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
OPEN_NAMESPACES = ("kube-node-lease",)
"""System namespaces without pods: children of Namespaces may be in them."""
WHY = """Holds the operator's account to children of its own resources, whoever has its token.
docs/guides/in-cluster.md"""

_DELETING = 'request.operation == "DELETE"'
"""A child that is being deleted may have a name that new children do not get any more."""
_CONTROLLER = "metadata.?ownerReferences.orValue([]).filter(r, r.?controller.orValue(false))"


def policy(names: Names, controllers: Sequence[Controller[Resource]]) -> list[Object]:
    """Return the ValidatingAdmissionPolicy of one installation, and its binding."""
    name = f"{names.base}-{CHILDREN}"
    made = names.cluster_wide(VERSION, "ValidatingAdmissionPolicy", name)
    binding = names.cluster_wide(VERSION, "ValidatingAdmissionPolicyBinding", name)
    account = f"system:serviceaccount:{names.namespace}:{names.base}"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": list(_rules(controllers))},
        "matchConditions": [
            {
                "name": f"asked-by-{names.program}",
                "expression": f"request.userInfo.username == {json.dumps(account)}",
            }
        ],
        "variables": [
            {"name": name, "expression": expression}
            for name, expression in _variables(names, controllers).items()
        ],
        "validations": [
            {"expression": expression, "reason": "Forbidden", "message": message}
            for message, expression in _validations(names, controllers).items()
        ],
    }
    return [
        made | {"spec": spec},
        binding | {"spec": {"policyName": name, "validationActions": ["Deny"]}},
    ]


def _rules(controllers: Iterable[Controller[Resource]]) -> Iterable[Object]:
    plurals: dict[str, set[str]] = {}
    for controller in controllers:
        for api in (*(kind.api for kind in controller.owns), *_claimed(controller)):
            plurals.setdefault(api.group, set()).add(api.plural)
    for group, resources in sorted(plurals.items()):
        yield {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": sorted(resources),
        }


def _variables(names: Names, controllers: Sequence[Controller[Resource]]) -> dict[str, str]:
    finalizers = sorted({name for controller in controllers for name in controller.finalizers})
    ours = [_is_child(controller, kind) for controller in controllers for kind in controller.owns]
    shared = [_is_child(one, part.kind) for one in controllers for part in one.shared]
    claims = dict.fromkeys(
        _is_claim(names, controller, api)
        for controller in controllers
        for api in _claimed(controller)
    )
    return {
        "name": "object == null ? oldObject.metadata.name : object.metadata.name",
        "before": f"oldObject == null ? [] : oldObject.{_CONTROLLER}",
        "after": f"object == null ? [] : object.{_CONTROLLER}",
        "named": f"{_DELETING} ? variables.before : variables.after",
        "child": "variables.named.exists(r, " + _either(ours) + ")",
        # Releasing an orphaned child: our finalizer is removed, and the spec does not change.
        "released": (
            'request.operation == "UPDATE" && variables.before.size() == 0'
            " && variables.after.size() == 0 && object.spec == oldObject.spec"
            " && oldObject.metadata.?finalizers.orValue([])"
            f".exists(f, f in {json.dumps(finalizers)})"
        ),
        **({"givenBack": _given_back(shared)} if shared else {}),
        **({"claimed": _CLAIMED + f" && ({_either(claims)})"} if claims else {}),
    }


_CLAIMED = 'request.operation == "UPDATE" && variables.before == variables.after'
"""A claim changes neither owner nor others' finalizers; RBAC grants neither create nor delete."""


def _given_back(shared: Iterable[str]) -> str:
    """Return the CEL expression: a child that others have a part of is made nobody's child."""
    return (
        'request.operation == "UPDATE" && variables.after.size() == 0'
        f" && variables.before.exists(r, {_either(shared)})"
    )


def _either(expressions: Iterable[str]) -> str:
    return " || ".join(f"({one})" for one in expressions) or "false"


def _claimed(controller: Controller[Resource]) -> list[ApiResource]:
    """Return the kinds of objects that a controller writes to without owning them."""
    is_written = not controller.is_custom and controller.informs is None
    own = [controller.resource.api] if is_written else []
    return [*own, *(claimable.kind.api for claimable in controller.claims)]


def _is_claim(names: Names, controller: Controller[Resource], api: ApiResource) -> str:
    manager = Installation(names.instance).field_manager(controller.name)
    where = controller.watch.namespace
    return " && ".join(
        (
            f"request.resource.group == {json.dumps(api.group)}",
            f"request.resource.resource == {json.dumps(api.plural)}",
            f'request.options.?fieldManager.orValue("") == {json.dumps(manager)}',
            *((f"request.namespace == {json.dumps(where)}",) if where else ()),
            f"{_finalizers('object', controller)} == {_finalizers('oldObject', controller)}",
        )
    )


def _finalizers(which: str, controller: Controller[Resource]) -> str:
    """Return the CEL expression of an object's finalizers but for that of a controller."""
    found = f"{which}.metadata.?finalizers.orValue([])"
    own = controller.finalizer
    return f"{found}.filter(f, f != {json.dumps(own)})" if own else found


def _is_child(controller: Controller[Resource], kind: type[View]) -> str:
    """Return the CEL expression: owner reference `r` makes this a child, with an allowed name."""
    owner = controller.resource.api
    return " && ".join(
        (
            f"request.resource.group == {json.dumps(kind.api.group)}",
            f"request.resource.resource == {json.dumps(kind.api.plural)}",
            _of_group(owner.group),
            f"r.kind == {json.dumps(owner.kind)}",
            *(("r.name == request.namespace",) if controller.is_for_namespaces else ()),
            f"({_DELETING} || "
            + " || ".join(_is_named(name) for name in controller.names_of(kind))
            + ")",
        )
    )


def _of_group(group: str) -> str:
    """Return the CEL expression: owner reference `r` is of this group, in any version."""
    if group:
        return f"r.apiVersion.startsWith({json.dumps(group + '/')})"
    return 'r.apiVersion == "v1"'


def _is_named(pattern: str) -> str:
    """Return the CEL expression: the name is the owner's name, put into this pattern."""
    if pattern == "*":
        return "true"
    before, after = pattern.split("{}")
    start = f"{json.dumps(before)} + r.name" if before else "r.name"
    if after.endswith("*"):
        return f"variables.name.startsWith({start} + {json.dumps(after[:-1])})"
    return f"variables.name == {start}" + (f" + {json.dumps(after)}" if after else "")


def _validations(names: Names, controllers: Sequence[Controller[Resource]]) -> dict[str, str]:
    more = {
        "variables.claimed": any(map(_claimed, controllers)),
        "variables.givenBack": any(controller.shared for controller in controllers),
    }
    foreign = " || ".join(("variables.released", *(name for name, has in more.items() if has)))
    open_ones = OPEN_NAMESPACES if any(one.is_for_namespaces for one in controllers) else ()
    system = [name for name in SYSTEM_NAMESPACES if name not in open_ones]
    kept_out, who = json.dumps([*system, names.namespace]), names.program
    return {
        f"{who} may write nothing in a system namespace, nor in its own, but what is its own": (
            f"!(request.namespace in {kept_out})"
        ),
        f"{who} may write only children of its own resources, by the names it gives them": (
            f"variables.child || {foreign}"
        ),
        f"{who} may not make a child of what is there already and is not its own": (
            f'request.operation != "UPDATE" || {foreign}'
            " || variables.before.exists(was, variables.after.exists(r, r.uid == was.uid))"
        ),
    }
