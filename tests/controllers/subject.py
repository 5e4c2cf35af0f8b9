"""Subject: one controller, the resources it may be given and the objects it may observe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from hedgerow.contract import Answers, Controller, Desired, Observed
from hedgerow.plan.declaration import expanded
from hedgerow_schemas.base import CustomResource, Resource, View

Object = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)


@dataclass(frozen=True)
class Subject:
    """One controller: `resources` are valid ones, `names` the names its children may have.

    `fields` are paths that compose reads of what it observes; hostile values go there. `lasting`
    children stay as they were made, whatever is declared later.
    """

    controller: Controller[Resource]
    resources: st.SearchStrategy[Object]
    names: Callable[[str], tuple[str, ...]]
    fields: tuple[tuple[str, ...], ...]
    lasting: bool = False

    def __str__(self) -> str:
        return self.controller.name

    @property
    def kinds(self) -> tuple[type[View], ...]:
        return (*self.controller.owns, *(r.kind for r in self.controller.relates))

    def compose(self, resource: Resource, observed: Observed) -> Desired:
        desired = self.controller.compose(resource, observed)
        return expanded(desired, self.controller, observed)

    def read(self, resource: Object) -> CustomResource:
        return self.controller.resource.model_validate(resource)

    def hostile(self, name: str) -> st.SearchStrategy[Observed]:
        """Observations of objects that other programs wrote, however they liked.

        No two are of one kind and name.
        """
        objects = st.builds(
            _written,
            st.sampled_from(self.names(name)),
            st.dictionaries(st.sampled_from(self.fields), json_values, max_size=6),
        )
        views = st.builds(lambda kind, obj: kind(obj), st.sampled_from(self.kinds), objects)
        kinds = [kind.api.kind for kind in self.kinds]
        refused = st.frozensets(
            st.tuples(st.sampled_from(kinds), st.sampled_from(self.names(name))), max_size=2
        )
        many = st.lists(views, max_size=8, unique_by=lambda view: (type(view), view.name))
        split = many.flatmap(lambda found: st.integers(0, len(found)).map(lambda n: (found, n)))
        created = refused.map(lambda made: dict.fromkeys(made, "u"))
        return st.builds(
            lambda cut, answers: Observed(
                NOW, tuple(cut[0][cut[1] :]), tuple(cut[0][: cut[1]]), answers=answers
            ),
            split,
            st.builds(Answers, refused=refused, created=created),
        )


def _written(name: str, values: dict[tuple[str, ...], Any]) -> Object:
    obj: Object = {"metadata": {"name": name, "namespace": "default", "uid": "u"}}
    for path, value in values.items():
        inner: Any = obj
        for step in path[:-1]:
            inner = inner.setdefault(step, {}) if isinstance(inner, dict) else {}
        if isinstance(inner, dict):
            inner[path[-1]] = value
    return obj
