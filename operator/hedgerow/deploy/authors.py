"""Authors: an admission policy on who may ask a controller of a built-in kind for something.

Such a controller is asked by annotations, and writes with the operator's rights. So whoever adds or
changes one of them needs the right to patch whatever the controller may write on behalf of the
object. For custom resources the webhook for claims asks the same.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from hedgerow.deploy.admission_policies import WIDEST, admission_policy, either, is_of
from hedgerow.deploy.names import AUTHORS, Names
from hedgerow.encoding import to_ascii
from hedgerow.plan.yield_and_claim import CLAIM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import ApiResource, Object, Resource

WHY = """Whoever asks for something by an annotation must be able to write it by hand.
docs/guides/policy.md"""
_ANNOTATIONS = "metadata.?annotations.orValue({})"


def policy(names: Names, controllers: Sequence[Controller[Resource]]) -> list[Object]:
    """Return the ValidatingAdmissionPolicy of one installation, and its binding.

    Nothing if no controller is for a built-in kind on whose behalf something is written.
    """
    asked = [one for one in controllers if not one.is_custom and _written(one)]
    if not asked:
        return []
    return admission_policy(
        names,
        f"{names.base}-{AUTHORS}",
        (_judged(asked), ("CREATE", "UPDATE")),
        _VARIABLES,
        _validations(names, asked),
    )


def _written(controller: Controller[Resource]) -> list[ApiResource]:
    return [*(kind.api for kind in controller.owns), *controller.claimed]


def _judged(controllers: Iterable[Controller[Resource]]) -> Iterator[tuple[str, str]]:
    """Yield what is judged: an annotation can be written by way of some subresources too."""
    for api in (controller.resource.api for controller in controllers):
        yield from ((api.group, api.plural), (api.group, f"{api.plural}/*"))


_VARIABLES = {
    "before": f"oldObject == null ? {{}} : oldObject.{_ANNOTATIONS}",
    "after": f"object.{_ANNOTATIONS}",
}


def _validations(names: Names, controllers: Iterable[Controller[Resource]]) -> Iterable[Object]:
    """Yield a validation for each kind that is written: one question each, for they are dear."""
    asking: defaultdict[tuple[ApiResource, str], list[Controller[Resource]]] = defaultdict(list)
    for controller in controllers:
        where = "object.metadata.name" if controller.is_for_namespaces else "request.namespace"
        for api in _written(controller):
            asking[api, where if api.namespaced else ""].append(controller)
    for (api, where), several in asking.items():
        within = f".namespace({where})" if where else ""
        keys = ", ".join(dict.fromkeys(key for one in several for key in _keys(one)))
        yield {
            "expression": (
                f"!({either(dict.fromkeys(map(_is_asked, several)))})"
                f" || authorizer.group({to_ascii(api.group)})"
                f".resource({to_ascii(api.plural)}){within}.check('patch').allowed()"
            ),
            "reason": "Forbidden",
            "message": (
                f"{names.program} writes {api.plural} on behalf of whoever sets the annotations"
                f" {keys}: that takes the right to patch {api.plural} there"
            ),
        }


def _keys(controller: Controller[Resource]) -> list[str]:
    prefix = controller.built_in.annotation_prefix
    return [CLAIM, *([f"{prefix}*"] if prefix else ())]


def _is_asked(controller: Controller[Resource]) -> str:
    """Return the CEL expression: an annotation that asks this controller is added or changed.

    Any change counts where there are more than `WIDEST` annotations.
    """
    prefix, where = controller.built_in.annotation_prefix, controller.built_in.namespace
    begins = f" || k.startsWith({to_ascii(prefix)})" if prefix else ""
    changed = (
        f"variables.after.exists(k, (k == {to_ascii(CLAIM)}{begins})"
        " && variables.before[?k] != variables.after[?k])"
    )
    return " && ".join(
        (
            is_of(controller.resource.api),
            *((f"request.namespace == {to_ascii(where)}",) if where else ()),
            "variables.before != variables.after",
            f"(variables.after.size() > {WIDEST} || {changed})",
        )
    )
