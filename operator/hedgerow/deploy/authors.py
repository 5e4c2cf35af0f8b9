"""Authors: an admission policy on who may have a controller write something on their behalf.

A controller writes with the operator's rights: it takes claimed fields by force, and one of a
built-in kind is asked by annotations. So whoever claims or asks needs the right to patch whatever
the controller may write on behalf of the object. So does whoever changes the spec of a custom
resource that claims fields, and by that their values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.deploy.admission_policies import WIDEST, admission_policy, is_of
from hedgerow.deploy.names import AUTHORS, Names
from hedgerow.encoding import to_ascii
from hedgerow.plan.yield_and_claim import CLAIM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import ApiResource, Object, Resource

WHY = """Whoever claims fields, or asks for something by an annotation, must be able to write it
by hand (docs/guides/policy.md)."""
_ANNOTATIONS: Final = "metadata.?annotations.orValue({})"
_KEY: Final = to_ascii(CLAIM)


def policy(names: Names, controllers: Sequence[Controller[Resource]]) -> list[Object]:
    """Return the ValidatingAdmissionPolicy of one installation, and its binding.

    Nothing if no controller writes anything on behalf of its resources.
    """
    asked = [controller for controller in controllers if _written(controller)]
    if not asked:
        return []
    return admission_policy(
        names,
        f"{names.base}-{AUTHORS}",
        (_judged(asked), ("CREATE", "UPDATE")),
        _VARIABLES,
        [rule for controller in asked for rule in _validations(names, controller)],
    )


def _written(controller: Controller[Resource]) -> list[ApiResource]:
    return list(dict.fromkeys([*(kind.api for kind in controller.owns), *controller.contributed]))


def _judged(controllers: Iterable[Controller[Resource]]) -> Iterator[tuple[str, str]]:
    """Yield the resources that are judged, each as a group and a plural.

    An annotation of a built-in kind can be written by way of some subresources too, that of a
    custom resource cannot.
    """
    for controller in controllers:
        api = controller.resource.api
        yield api.group, api.plural
        if not controller.is_custom:
            yield api.group, f"{api.plural}/*"


_VARIABLES: Final = {
    "before": f"oldObject == null ? {{}} : oldObject.{_ANNOTATIONS}",
    "after": f"object.{_ANNOTATIONS}",
    "claim": f"{_KEY} in variables.after",
    "claimChanged": f"variables.before[?{_KEY}] != variables.after[?{_KEY}]",
}


def _validations(names: Names, controller: Controller[Resource]) -> Iterator[Object]:
    """Yield a validation for each kind that the controller writes."""
    place = "object.metadata.name" if controller.is_for_namespaces else "request.namespace"
    asked, who = _is_asked(controller), _who(controller)
    for api in _written(controller):
        within = f".namespace({place})" if api.namespaced else ""
        yield {
            "expression": (
                f"!({asked}) || authorizer.group({to_ascii(api.group)})"
                f".resource({to_ascii(api.plural)}){within}.check('patch').allowed()"
            ),
            "reason": "Forbidden",
            "message": (
                f"{names.program} writes {api.plural} on behalf of"
                f" {controller.resource.api.plural}: whoever {who} needs the right to patch"
                f" {api.plural} there"
            ),
        }


def _who(controller: Controller[Resource]) -> str:
    if controller.is_custom:
        return f"sets the annotation {CLAIM}, or changes the spec of one that has it,"
    prefix = controller.built_in.annotation_prefix
    return f"sets the annotations {CLAIM}, {prefix}*" if prefix else f"sets the annotation {CLAIM}"


def _is_asked(controller: Controller[Resource]) -> str:
    """Return the CEL expression: this write asks the controller for something."""
    built_in = controller.built_in
    prefix, where = built_in.annotation_prefix, built_in.select.namespace
    asked = "variables.claim && variables.claimChanged"
    if controller.is_custom:
        # Where there is no old object the claim has changed, and CEL looks no further.
        asked = "variables.claim && (variables.claimChanged || object.?spec != oldObject.?spec)"
    elif prefix:
        asked = f"{asked} || {_has_changed(prefix)}"
    return " && ".join(
        (
            is_of(controller.resource.api),
            *((f"request.namespace == {to_ascii(where)}",) if where else ()),
            f"({asked})",
        )
    )


def _has_changed(prefix: str) -> str:
    """Return the CEL expression: an annotation with this prefix is added or changed.

    Any change counts where there are more than `WIDEST` annotations.
    """
    return (
        "variables.before != variables.after"
        f" && (variables.after.size() > {WIDEST}"
        f" || variables.after.exists(k, k.startsWith({to_ascii(prefix)})"
        " && variables.before[?k] != variables.after[?k]))"
    )
