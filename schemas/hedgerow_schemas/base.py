"""Base: the common parts of all custom resources and of all views of live objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from hedgerow_schemas.definition import Definition, list_map

Object = dict[str, Any]
"""A Kubernetes object as JSON."""
_RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class ApiResource:
    """One kind as the API server's discovery lists it.

    `group_version` is written as in a manifest: `v1`, `apps/v1`.
    """

    group_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        group, slash, _ = self.group_version.rpartition("/")
        return group if slash else ""

    @property
    def version(self) -> str:
        """The version alone: `v1` of `apps/v1`."""
        return self.group_version.rpartition("/")[2]


class Model(BaseModel):
    """An immutable part of a custom resource: camelCase on the wire, unknown fields dropped."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore"
    )

    def wire(self) -> Object:
        """Return the JSON form: camelCase, no nulls (server-side apply would own a null)."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class OwnerReference(Model):
    """`metadata.ownerReferences[]`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class ObjectMeta(Model):
    """The parts of `metadata` that composing needs; managedFields stay with the runtime."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()


def instant(text: str) -> datetime | None:
    """Return an RFC 3339 time, as Go reads it; None if it is absent or invalid.

    A date alone, a week, a blank instead of the T, or a time without an offset is invalid. So is
    one that is not in the years 1 to 9999 of UTC, though Go has a year 0.
    """
    if not _RFC_3339.fullmatch(text):
        return None
    try:
        parsed = datetime.fromisoformat(text)
        parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return parsed


def _whole_seconds(instant: datetime) -> datetime:
    """`metav1.Time` holds whole seconds; a finer one would never compare equal again."""
    return instant.replace(microsecond=0)


Time = Annotated[datetime, AfterValidator(_whole_seconds)]
"""An instant as `metav1.Time` writes it: RFC 3339, UTC, whole seconds."""


Int32 = Annotated[int, Field(json_schema_extra={"format": "int32"})]
"""An integer of 32 bits, as most numbers of Kubernetes's API are."""

Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
"""A number of things, none of them negative."""

Generation = Count
"""A `metadata.generation`, as a status repeats it."""


class Condition(Model):
    """One aspect of the resource, as `kubectl wait --for=condition=…` reads it."""

    # The runtime stamps lastTransitionTime and observedGeneration.
    type: str = Field(description="What the condition is about, in CamelCase.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(description="Why, as one CamelCase word for programs.")
    message: str = Field(default="", description="Why, as a sentence for people.")
    last_transition_time: Time | None = Field(
        default=None, description="When the status last changed."
    )
    observed_generation: Generation | None = Field(
        default=None, description="The metadata.generation that the condition is about."
    )


class ContestedField(Model):
    """A field that hedgerow declares and that is otherwise on the object, mostly held by another.

    Values are text, cut when they are long; those of a Secret are never shown.
    """

    object: str = Field(description="The object concerned, as kind and name: Deployment/demo.")
    path: str = Field(description="The field, as managedFields and conflict messages write it.")
    reason: str | None = Field(
        default=None,
        description="OtherValue: another field manager holds another value. Removed: somebody"
        " removed it, and nobody holds it. ScaledToZero: scaled to 0; it is not recorded by whom."
        " DeclaredNoMore: a list item that others hold fields of. UnknownOwner: a list item that"
        " may have been hedgerow's.",
    )
    declared: str | None = Field(
        default=None, description="The value that hedgerow declares; absent if it declares none."
    )
    live: str | None = Field(
        default=None, description="The value on the object; absent if there is none."
    )
    manager: str | None = Field(
        default=None, description="The field manager that holds the field; absent if nobody does."
    )
    operation: str | None = Field(
        default=None, description="How it got the field: Apply or Update."
    )
    subresource: str | None = Field(
        default=None, description="The subresource that it wrote through, such as scale."
    )
    since: Time | None = Field(default=None, description="When it took the field.")


class AdmittedChild(Model):
    """What the API server made of a child: it stores another value than what was applied."""

    object: str = Field(description="The object concerned, as kind and name: Deployment/demo.")
    digest: str = Field(
        description="A digest of what was applied and of the difference. While both are the same,"
        " the object is as it should be."
    )


class Status(Model):
    """What was observed; written by the operator alone."""

    observed_generation: Generation | None = Field(
        default=None, description="The metadata.generation that this status is about."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="Ready is always there; Reconciling, Stalled and Contested while true.",
        json_schema_extra=list_map("type"),
    )
    contested: tuple[ContestedField, ...] = Field(
        default=(),
        description="Fields that others hold: left as they are, never overwritten. At most 50 are"
        " listed; contestedCount counts all.",
        json_schema_extra=list_map("object", "path"),
    )
    contested_count: Count | None = Field(
        default=None, description="How many fields are contested; absent if none is."
    )
    admitted: tuple[AdmittedChild, ...] | None = Field(
        default=None,
        description="What mutating admission made of the children, so that a restart applies none"
        " of them again. At most 50 are listed, and no Secret.",
        json_schema_extra=list_map("object"),
    )

    @property
    def has_unlisted(self) -> bool:
        """Whether more fields are contested than are listed."""
        return (self.contested_count or 0) > len(self.contested)


class Resource(Model):
    """The object that a controller is for: identity as a class variable, the rest as a model.

    A class derived from it is for a kind that Kubernetes has built in, such as Deployment: nothing
    is installed for it, and its status is not ours to write. The model has the fields that
    composing reads.
    """

    api: ClassVar[ApiResource]
    metadata: ObjectMeta


class CustomResource(Resource):
    """A custom resource: its definition is installed, `spec` and `status` are models.

    Its schema is rendered by `hedgerow_schemas.crd`; the class docstring describes the kind.
    """

    definition: ClassVar[Definition] = Definition()


class View:
    """A tolerant view of one live object: absent or ill-typed fields are empty.

    A view never raises, because other programs wrote the objects.
    """

    api: ClassVar[ApiResource]
    __slots__ = ("raw",)

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    def at(self, *path: str) -> Any:
        """Return the value below `path`, or None if any step is missing or not a map."""
        value: Any = self.raw
        for step in path:
            # Nearly always it is a dict; the question about an abstract class takes much longer.
            if type(value) is not dict and not isinstance(value, Mapping):  # pyright: ignore[reportUnknownArgumentType]
                return None
            value = value.get(step)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return value  # pyright: ignore[reportUnknownVariableType]

    def text(self, *path: str) -> str:
        """Return the string below `path`, or an empty one."""
        value = self.at(*path)
        return value if isinstance(value, str) else ""

    def number(self, *path: str) -> int:
        """Return the integer below `path`, or 0."""
        value = self.at(*path)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    def mapping(self, *path: str) -> Mapping[str, Any]:
        """Return the map below `path`, or an empty one."""
        value = self.at(*path)
        return value if isinstance(value, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]

    def items(self, *path: str) -> tuple[Any, ...]:
        """Return the list below `path` as a tuple, or an empty one."""
        value = self.at(*path)
        return tuple(value) if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.text("metadata", "name")

    @property
    def namespace(self) -> str:
        """`metadata.namespace`; empty if there is none."""
        return self.text("metadata", "namespace")

    @property
    def uid(self) -> str:
        """`metadata.uid`."""
        return self.text("metadata", "uid")

    @property
    def labels(self) -> Mapping[str, Any]:
        """`metadata.labels`."""
        return self.mapping("metadata", "labels")
