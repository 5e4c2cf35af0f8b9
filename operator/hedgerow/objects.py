"""Objects: their identity, owner references, annotations, and the labels that mark our children."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from hedgerow.encoding import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow_schemas.base import ApiResource, Object

PROGRAM: Final = "hedgerow"
"""The name of a program that has none of its own."""
LONGEST_PROGRAM: Final = 30
"""Characters of a program's name: with an instance and a suffix it still is a Service's name."""
PROGRAM_NAME: Final = rf"[a-z][a-z0-9]{{0,{LONGEST_PROGRAM - 1}}}"
"""What a program may be called: without a hyphen, so that `a-b-c` is read in one way only."""
_TAKEN: Final = frozenset({"kube"})
"""Whose names with a hyphen, such as `kube-system`, are Kubernetes's own."""
DOMAIN: Final = "hedgerow.dev"
CONTROLLER_LABEL: Final = f"{DOMAIN}/controller"
"""The label on the children of hedgerow's own controllers; see `Installation.label_key`."""
PLACEHOLDER: Final = "00000000-0000-0000-0000-000000000000"
"""The uid of a resource that does not exist yet, in forecasts; servers accept it in dry runs."""
_LABEL_KEY: Final = re.compile(rf"(?:({PROGRAM_NAME})\.)?{re.escape(CONTROLLER_LABEL)}")
_MOST_DIGITS: Final = 20
_WORD: Final = re.compile(
    rf"(?P<command>(?<=`){PROGRAM}(?= )|(?<=\$\(){PROGRAM}(?= ))|{PROGRAM}(?!\.dev|_schemas|/)"
)
_PREFIX: Final = f"{PROGRAM.upper()}_"


def home_of(api: ApiResource, namespace: str, name: str) -> str:
    """Return the namespace of an object's children: its own; those of a Namespace are in it."""
    return name if api.kind == "Namespace" and api.group_version == "v1" else namespace


class Key(NamedTuple):
    """Namespace and name of a resource; the namespace is empty for a cluster-scoped one."""

    namespace: str
    name: str


class ChildId(NamedTuple):
    """Kind and name of a child; it is in its owner's namespace."""

    kind: str
    name: str


class ObjectRef(Struct, frozen=True):
    """One object: its kind, namespace and name, and the uid if it is about one exact object."""

    api: ApiResource
    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        """Return it as kubectl accepts it: `Deployment/demoblue-deployment`."""
        return f"{self.api.kind}/{self.name}"

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return Key(self.namespace, self.name)

    @property
    def home(self) -> str:
        """The namespace of its children: its own, and for a Namespace that namespace itself."""
        return home_of(self.api, self.namespace, self.name)


class Installation(Struct, frozen=True):
    """One installation of a program in a cluster: its field managers and its children's labels.

    Two installations in one cluster need different instances or different programs: otherwise both
    would write as the same field manager. Raises ValueError if the program's name is not valid.
    """

    instance: str = ""
    program: str = PROGRAM

    def __post_init__(self) -> None:
        """Raise ValueError if the program's name will not do."""
        if not re.fullmatch(PROGRAM_NAME, self.program) or self.program in _TAKEN:
            raise ValueError(
                f"{self.program!r} is no program's name: a letter, then lower-case letters and"
                f" digits, at most {LONGEST_PROGRAM}; a hyphen begins the name of an instance, and"
                f" names that begin with {' or '.join(f'{name}-' for name in sorted(_TAKEN))} are"
                " Kubernetes's own"
            )

    @property
    def base(self) -> str:
        """The name of its Lease, ServiceAccount, Deployment and most other objects."""
        return "-".join(filter(None, (self.program, self.instance)))

    @property
    def is_named(self) -> bool:
        """Whether the program has a name of its own."""
        return self.program != PROGRAM

    @property
    def system_namespace(self) -> str:
        """The namespace of the program, if no other is chosen."""
        return f"{self.program}-system"

    @property
    def domain(self) -> str:
        """The domain in names that the API requires to have one."""
        return f"{self.program}.{DOMAIN}" if self.is_named else DOMAIN

    @property
    def label_key(self) -> str:
        """The label on the children of its controllers."""
        return f"{self.domain}/controller"

    def field_manager(self, controller: str) -> str:
        """Return the field manager of a controller: one per controller, never per process."""
        return f"{self.base}-{controller}"

    def common_manager(self, purpose: str) -> str:
        """Return the field manager that all instances of the program have in common."""
        return f"{self.program}-{purpose}"

    def label(self, controller: str) -> str:
        """Return the value of `label_key` on a controller's children."""
        return ".".join(filter(None, (self.instance, controller)))

    def is_labelled(self, obj: Mapping[str, Any], controller: str) -> bool:
        """Return whether an object has the label of a controller's children."""
        labels: Mapping[str, str] = metadata(obj).get("labels") or {}
        return labels.get(self.label_key) == self.label(controller)

    def selector(self, controller: str) -> str:
        """Return the label selector of a controller's children."""
        return f"{self.label_key}={self.label(controller)}"


def is_manager_of(controller: str, manager: str) -> bool:
    """Return whether a field manager is that of a controller, of any program and instance.

    Of the program hedgerow itself, every field manager counts.
    """
    program, hyphen, name = manager.partition("-")
    if program == PROGRAM:
        return bool(hyphen)
    return bool(re.fullmatch(PROGRAM_NAME, program)) and name.rpartition("-")[2] == controller


def labelling_program(key: str) -> str | None:
    """Return the program whose controllers label their children with this key, or None."""
    match = _LABEL_KEY.fullmatch(key)
    return None if match is None else match[1] or PROGRAM


def renamed(text: str, program: str, command: str = "") -> str:
    """Return a text of ours, such as a command's help, with the name of another program.

    Names of the library stay: `hedgerow.dev` in annotations, and paths. `command` is how the
    program is called, where that is not its name: its commands are written so.
    """
    text = text.replace(_PREFIX, variable_prefix(program))
    called = command or program
    return _WORD.sub(lambda match: called if match["command"] else program, text)


def variable_prefix(program: str) -> str:
    """Return the start of the names of a program's environment variables."""
    return f"{program.upper()}_"


def metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object's metadata, or an empty map."""
    return obj.get("metadata") or {}


def version_number(version: str) -> int:
    """Return a resourceVersion as a number; 0 for any other text.

    Versions of one kind are comparable as integers (KEP-5504), which have 64 bits.
    """
    return int(version) if len(version) <= _MOST_DIGITS and version.isdecimal() else 0


def controller_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the owner reference with `controller: true`, or an empty map."""
    owners: list[Mapping[str, Any]] = metadata(obj).get("ownerReferences") or []
    none: Mapping[str, Any] = {}
    return next((owner for owner in owners if owner.get("controller") is True), none)


def is_of(owner: Mapping[str, Any], api: ApiResource) -> bool:
    """Return whether an owner reference is to a resource of this group and kind, of any version."""
    group, _, _ = str(owner.get("apiVersion", "")).rpartition("/")
    return (group, owner.get("kind")) == (api.group, api.kind)


def annotation(obj: Mapping[str, Any], name: str) -> str:
    """Return an annotation's value; an empty string if there is none, or it is no text."""
    annotations: Mapping[str, Any] = metadata(obj).get("annotations") or {}
    value = annotations.get(name)
    return value if isinstance(value, str) else ""


def ref_of(api: ApiResource, live: Mapping[str, Any]) -> ObjectRef:
    """Return the reference of a live object, with its uid."""
    meta = metadata(live)
    return ObjectRef(api, meta.get("namespace", ""), meta["name"], meta.get("uid", ""))


def is_terminating(obj: Mapping[str, Any]) -> bool:
    """Return whether deletion of the object has begun: nothing is written to it any more."""
    return bool(metadata(obj).get("deletionTimestamp"))


def identity(ref: ObjectRef) -> Object:
    """Return the manifest that names an object and declares nothing."""
    meta: Object = {"name": ref.name}
    if ref.namespace:
        meta["namespace"] = ref.namespace
    if ref.uid:
        meta["uid"] = ref.uid
    return {"apiVersion": ref.api.group_version, "kind": ref.api.kind, "metadata": meta}


def controller_reference(owner: ObjectRef) -> Object:
    """Return the one owner reference of a child.

    `blockOwnerDeletion` is left out: setting it requires the right to update the owner's
    finalizers.
    """
    return {
        "apiVersion": owner.api.group_version,
        "kind": owner.api.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }


def digest(*parts: Any) -> str:
    """Return a short, stable digest of JSON values (16 hex digits of SHA-256)."""
    text = canonical_json(parts)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
