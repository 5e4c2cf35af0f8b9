"""Definition: parts of a CRD besides its fields: columns, short names, scale, CEL rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

UPSTREAM = "x-upstream"
"""The name of a Kubernetes type whose schema is inserted here, from the API server's OpenAPI."""

EDITOR = "x-editor"
"""JSON Schema for editors only; the server uses a CEL rule instead."""

DNS_1035_LABEL = "^[a-z]([-a-z0-9]*[a-z0-9])?$"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`; a `priority` above 0 shows it only with `-o wide`."""

    name: str
    json_path: str
    description: str
    type: Literal["string", "integer", "boolean", "date"] = "string"
    priority: int = 0

    def wire(self) -> dict[str, Any]:
        """Return the entry of `additionalPrinterColumns`."""
        column: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "jsonPath": self.json_path,
            "description": self.description,
        }
        return {**column, "priority": self.priority} if self.priority else column


def _of_condition(kind: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


STANDARD: Final = (
    Column("Ready", _of_condition("Ready", "status"), "Whether all is as declared."),
    Column(
        "Contested",
        _of_condition("Contested", "status"),
        "Whether another field manager holds a field that is declared.",
    ),
    Column("Reason", _of_condition("Ready", "reason"), "Why it is ready, or is not."),
    Column("Age", ".metadata.creationTimestamp", "Time since creation.", type="date"),
)
"""The columns that every resource has, whatever its author adds."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The JSON paths of the scale subresource, for `kubectl scale` and autoscalers.

    `selector` is the status field with the pods' label selector in its string form.
    """

    spec_replicas: str
    status_replicas: str
    selector: str

    def wire(self) -> dict[str, Any]:
        """Return the entry of `subresources`."""
        return {
            "specReplicasPath": self.spec_replicas,
            "statusReplicasPath": self.status_replicas,
            "labelSelectorPath": self.selector,
        }


@dataclass(frozen=True, slots=True)
class Definition:
    """What `kubectl` uses of a resource besides its name: columns, short names, scale.

    Without `categories` it is in the one that is called as the program. `columns` come before those
    of `STANDARD` that they do not name themselves.
    """

    columns: tuple[Column, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] | None = None
    scale: Scale | None = None

    @property
    def shown(self) -> tuple[Column, ...]:
        """All columns of `kubectl get`."""
        named = {column.name for column in self.columns}
        return (*self.columns, *(column for column in STANDARD if column.name not in named))


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule of the schema, and the message for users if it does not hold.

    `path` is the invalid field, relative to the rule. `on_create_only` excludes existing objects:
    otherwise not even a finalizer could be removed from older ones. `editor` is the same rule in
    JSON Schema.
    """

    rule: str
    message: str
    path: str = ""
    reason: Literal["FieldValueInvalid", "FieldValueRequired"] = "FieldValueInvalid"
    on_create_only: bool = False
    editor: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Return the entry of `x-kubernetes-validations`."""
        rule: dict[str, Any] = {"message": self.message, "reason": self.reason}
        if self.path:
            rule["fieldPath"] = self.path
        if self.on_create_only:
            return {"rule": f"oldSelf.hasValue() || ({self.rule})", "optionalOldSelf": True} | rule
        return {"rule": self.rule} | rule


def named_after(what: str, longest: int) -> Rule:
    """Return the rule for the name of a resource that a Service is named after (RFC 1035).

    It holds on creation only; `what` says which objects get the name.
    """
    limits = {"maxLength": longest, "pattern": DNS_1035_LABEL}
    name = {"properties": {"name": limits}}
    return Rule(
        rule=(
            f"self.metadata.name.size() <= {longest}"
            f" && self.metadata.name.matches('{DNS_1035_LABEL}')"
        ),
        message=(
            f"the name must be a DNS-1035 label of at most {longest} characters (a-z, 0-9 and '-',"
            f" beginning with a letter, not ending with '-'): {what} are named after it"
        ),
        path=".metadata.name",
        on_create_only=True,
        editor={"properties": {"metadata": name}},
    )


def rules(*given: Rule) -> dict[str, Any]:
    """Return the `json_schema_extra` of a model or field that these rules hold for."""
    extra: dict[str, Any] = {"x-kubernetes-validations": [rule.wire() for rule in given]}
    editors = [dict(rule.editor) for rule in given if rule.editor]
    return {**extra, EDITOR: {"allOf": editors}} if editors else extra


def list_map(*keys: str) -> dict[str, Any]:
    """Return the `json_schema_extra` of a list whose items have these fields as keys."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
