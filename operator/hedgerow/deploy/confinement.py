"""Confinement: admission policies that limit the operator's account to what is its own.

A right to write Deployments everywhere is a right to everything: with the account's token, somebody
could run a privileged pod in any namespace. So is a right to write a webhook configuration: a
webhook reads, and may change, whatever is written. RBAC cannot express "children of a BlueGreen",
nor "`spec.replicas` alone", nor "`caBundle` alone"; the API server's admission policies can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.deploy.admission_policies import (
    admission_policy,
    either,
    is_of,
    same_but,
    unchanged_but,
)
from hedgerow.deploy.names import CHILDREN, PUBLISHER, Names
from hedgerow.deploy.rights import ADMISSION
from hedgerow.encoding import to_ascii
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.builtin import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import Object, Resource, View

EVENTS: Final = ApiResource("events.k8s.io/v1", "Event", "events")
SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
OPEN_NAMESPACES = ("kube-node-lease",)
"""System namespaces without pods: children of Namespaces may be in them."""
WHY = """Holds the operator's account to what is its own, whoever has its token.
docs/guides/in-cluster.md"""
WHY_PUBLISHING = """Of a webhook configuration the operator's account may change `caBundle` alone.
docs/guides/in-cluster.md"""
CONFIGURATIONS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")

_DELETING = 'request.operation == "DELETE"'
"""A child that is being deleted may have a name that new children do not get any more."""
_UPDATING = 'request.operation == "UPDATE"'
_SAME_OWNER = (
    "r.uid == was.uid && r.kind == was.kind && r.name == was.name"
    " && r.apiVersion.split('/')[0] == was.apiVersion.split('/')[0]"
)
"""Also of one API group: Kubernetes has a CronJob of its own."""
_CONTROLLER = "metadata.?ownerReferences.orValue([]).filter(r, r.?controller.orValue(false))"


def policy(names: Names, controllers: Sequence[Controller[Resource]]) -> list[Object]:
    """Return the ValidatingAdmissionPolicy of one installation, and its binding."""
    written = (api for c in controllers for api in (*(k.api for k in c.owns), *c.contributed))
    judged = ((api.group, api.plural) for api in (EVENTS, Secret.api, *written))
    return _policy(
        names, CHILDREN, judged, _variables(names, controllers), _validations(names, controllers)
    )


def publishing(names: Names) -> list[Object]:
    """Return the policy, and its binding, on the configurations of webhooks."""
    message = f"{names.program} may change nothing of a webhook configuration but caBundle"
    judged = ((ADMISSION, plural) for plural in CONFIGURATIONS)
    return _policy(names, PUBLISHER, judged, _WEBHOOKS, {message: _PUBLISHED})


_WEBHOOKS: Final = {
    "before": "oldObject == null ? [] : oldObject.?webhooks.orValue([])",
    "after": "object == null ? [] : object.?webhooks.orValue([])",
}
_PUBLISHED: Final = " && ".join(
    (
        _UPDATING,
        unchanged_but((("webhooks",),)),
        # No two webhooks of a configuration have the same name: the API server sees to that.
        "variables.after.size() == variables.before.size()",
        "variables.after.all(now, variables.before.exists(was, now.name == was.name && "
        + same_but("now", "was", (("clientConfig", "caBundle"),))
        + "))",
    )
)


def _policy(
    names: Names,
    suffix: str,
    judged: Iterable[tuple[str, str]],
    variables: dict[str, str],
    validations: dict[str, str],
) -> list[Object]:
    """Return a policy on the account's creations, changes and deletions, and its binding.

    `judged` are a group and a plural each; `validations` are expressions by their messages.
    """
    by_us = f"request.userInfo.username == {to_ascii(names.user)}"
    return admission_policy(
        names,
        f"{names.base}-{suffix}",
        (judged, ("CREATE", "UPDATE", "DELETE")),
        variables,
        [
            {"expression": expression, "reason": "Forbidden", "message": message}
            for message, expression in validations.items()
        ],
        conditions={f"asked-by-{names.program}": by_us},
    )


def _variables(names: Names, controllers: Sequence[Controller[Resource]]) -> dict[str, str]:
    ours = [_is_child(controller, kind) for controller in controllers for kind in controller.owns]
    certificate = f"{names.base}-serving"
    return {
        "name": "object == null ? oldObject.metadata.name : object.metadata.name",
        "before": f"oldObject == null ? [] : oldObject.{_CONTROLLER}",
        "after": f"object == null ? [] : object.{_CONTROLLER}",
        "named": f"{_DELETING} ? variables.before : variables.after",
        "event": is_of(EVENTS),
        # RBAC grants no other Secret there.
        "certificate": (
            f"{is_of(Secret.api)} && request.namespace == {to_ascii(names.namespace)}"
            f" && variables.name == {to_ascii(certificate)}"
        ),
        "child": "variables.named.exists(r, " + either(ours) + ")",
        **_of_others(names, controllers),
    }


def _of_others(names: Names, controllers: Sequence[Controller[Resource]]) -> dict[str, str]:
    """Return what may be written to objects that are no children, or are none afterwards."""
    shared = [_is_child(c, kind) for c in controllers for kind in c.shared]
    contributions = dict.fromkeys(
        _is_contribution(names, controller, api)
        for controller in controllers
        for api in controller.contributed
    )
    return {
        **({"givenBack": _given_back(shared)} if shared else {}),
        **({"contributed": f"{_UPDATING} && ({either(contributions)})"} if contributions else {}),
    }


def _given_back(shared: Iterable[str]) -> str:
    """Return the CEL expression: a child that others have a part of is made nobody's child."""
    return (
        f"{_UPDATING} && variables.after.size() == 0"
        f" && variables.before.exists(r, {either(shared)})"
    )


def _is_contribution(names: Names, controller: Controller[Resource], api: ApiResource) -> str:
    """Return the CEL expression: only what the controller may contribute to an object changes.

    On a built-in resource itself there is also the annotation that is its status.
    """
    manager, fields = names.installation.field_manager(controller.name), controller.contributed[api]
    where = controller.built_in.select.namespace
    if api == controller.resource.api:
        fields = (*fields, ("metadata", "annotations", STATUS_ANNOTATION))
    return " && ".join(
        (
            is_of(api),
            f'request.options.?fieldManager.orValue("") == {to_ascii(manager)}',
            *((f"request.namespace == {to_ascii(where)}",) if where else ()),
            unchanged_but(fields),
        )
    )


def _is_child(controller: Controller[Resource], kind: type[View]) -> str:
    """Return the CEL expression: owner reference `r` makes this a child, with an allowed name."""
    owner = controller.resource.api
    return " && ".join(
        (
            is_of(kind.api),
            _of_group(owner.group),
            f"r.kind == {to_ascii(owner.kind)}",
            *(("r.name == request.namespace",) if controller.is_for_namespaces else ()),
            f"({_DELETING} || "
            + " || ".join(_is_named(name) for name in controller.names_of(kind))
            + ")",
        )
    )


def _of_group(group: str) -> str:
    """Return the CEL expression: owner reference `r` is of this group, in any version."""
    if group:
        return f"r.apiVersion.startsWith({to_ascii(group + '/')})"
    return 'r.apiVersion == "v1"'


def _is_named(pattern: str) -> str:
    """Return the CEL expression: the name is the owner's name, put into this pattern."""
    if pattern == "*":
        return "true"
    before, named, after = pattern.removesuffix("*").partition("{}")
    parts = [to_ascii(before)] if before else []
    parts += ["r.name"] if named else []
    parts += [to_ascii(after)] if after else []
    start = " + ".join(parts)
    return (
        f"variables.name.startsWith({start})"
        if pattern.endswith("*")
        else f"variables.name == {start}"
    )


def _validations(names: Names, controllers: Sequence[Controller[Resource]]) -> dict[str, str]:
    for_namespaces = any(controller.is_for_namespaces for controller in controllers)
    open_ones = OPEN_NAMESPACES if for_namespaces else ()
    system = [name for name in SYSTEM_NAMESPACES if name not in open_ones]
    kept_out, who = to_ascii([*system, names.namespace]), names.program
    reporter = to_ascii(names.installation.label_key)
    apart = ("variables.event", "variables.certificate")
    foreign = (*apart, *(f"variables.{name}" for name in _of_others(names, controllers)))
    return {
        f"{who} may write nothing in a system namespace, nor in its own, but what is its own": (
            " || ".join((*apart, f"!(request.namespace in {kept_out})"))
        ),
        f"{who} may write only children of its own resources, by the names it gives them, and only"
        " those fields that its controllers contribute to other objects": (
            " || ".join(("variables.child", *foreign))
        ),
        f"{who} may not make a child of what is there already and is not its own": " || ".join(
            (
                f"!({_UPDATING})",
                *foreign,
                f"variables.before.exists(was, variables.after.exists(r, {_SAME_OWNER}))",
            )
        ),
        f"{who} may only create Events, and only in its own name": (
            '!variables.event || request.operation == "CREATE"'
            f" && object.?reportingController.orValue('') == {reporter}"
        ),
        f"{who} may write no Secret of a type that gives somebody's rights": (
            f"!({is_of(Secret.api)}) || object == null"
            f" || !(object.?type.orValue('') in {to_ascii(list(Secret.CREDENTIALS))})"
        ),
    }
