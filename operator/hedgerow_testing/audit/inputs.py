"""Inputs: what an audit is given: definitions, samples, the operator's rights and its command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Final

from hedgerow.deploy.manifest import objects_in
from hedgerow.errors import OneLineError
from hedgerow.fields.paths import is_map
from hedgerow.texts import printable
from hedgerow_tools.objects.files import texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hedgerow_schemas.base import Object

NAMESPACE: Final = "audit-samples"
"""Where samples without a namespace go."""
KUBECONFIG: Final = "{kubeconfig}"
"""In a word of the command it stands for the path of the kubeconfig."""
_SKIPPED: Final = frozenset({"Kustomization", "Component"})
_DEFINITION: Final = "CustomResourceDefinition"
_KUSTOMIZATIONS: Final = frozenset({"kustomization.yaml", "kustomization.yml"})
"""Files that kustomize reads; their kind may be left out."""
AUTHOR: Final = "helm"
"""The field manager of whoever applies the samples, if no other is given."""


class AuditError(OneLineError):
    """Why an audit cannot begin, or cannot go on, in one sentence."""


@dataclass(frozen=True, slots=True)
class Role:
    """One Role or ClusterRole of a file of rights; without a namespace it counts in all."""

    name: str
    namespace: str
    rules: tuple[Object, ...]

    @property
    def title(self) -> str:
        """Its kind and name, as a message tells it."""
        return (
            f"Role {self.namespace}/{self.name}" if self.namespace else f"ClusterRole {self.name}"
        )


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is audited; `{kubeconfig}` in the command stands for the path of the kubeconfig."""

    command: tuple[str, ...]
    definitions: tuple[Object, ...]
    samples: tuple[Object, ...]
    roles: tuple[Role, ...] | None = None
    """The operator's rights; None: it may do everything."""
    setup: str = ""
    fields: int = 6
    """Fields of each sample that are really changed."""
    directory: Path | None = None
    """Where the command is run; None: here."""
    manager: str = AUTHOR
    """The field manager of whoever applies the samples."""
    files: tuple[str, ...] = ()
    """The file of each sample, if they come from files."""

    @property
    def untried(self) -> tuple[str, ...]:
        """The kinds that are defined, and of which there is no sample."""
        tried = {(obj["apiVersion"].rpartition("/")[0], obj["kind"]) for obj in self.samples}
        specs = [obj["spec"] for obj in self.definitions]
        kinds = [(str(s.get("group")), str(s.get("names", {}).get("kind"))) for s in specs]
        return tuple(kind for group, kind in kinds if (group, kind) not in tried)

    def schema(self, api_version: str, kind: str) -> Mapping[str, Any]:
        """Return the schema of a kind; an empty one if no definition has it."""
        group, _, version = api_version.rpartition("/")
        versions = (
            served
            for crd in self.definitions
            if (crd["spec"].get("group"), crd["spec"].get("names", {}).get("kind")) == (group, kind)
            for served in crd["spec"].get("versions") or ()
        )
        none: Object = {}
        chosen = next((entry for entry in versions if entry.get("name") == version), none)
        schema: Object = chosen.get("schema") or {}
        return schema.get("openAPIV3Schema") or {}


def read_inputs(
    command: Sequence[str],
    crds: Path | Sequence[Path],
    samples: Path | Sequence[Path],
    rights: Path | Sequence[Path] | None = None,
    *,
    setup: str = "",
    fields: int = 6,
    directory: Path | None = None,
    namespace: str = NAMESPACE,
    manager: str = AUTHOR,
) -> Inputs:
    """Read all that an audit is given. Raises AuditError, ManifestError, OSError."""
    if not command:
        raise AuditError("no command is given; put the operator's own command after `--`")
    definitions = [obj for _, obj in _all_objects(crds) if obj["kind"] == _DEFINITION]
    if not definitions:
        raise AuditError(
            f"{_named(crds)} has no {_DEFINITION}; --crds names the directory of the operator's own"
        )
    objects = [(file, obj) for file, obj in _all_objects(samples) if obj["kind"] != _DEFINITION]
    if not objects:
        raise AuditError(
            f"{_named(samples)} has no object; --samples names the directory of examples"
        )
    objects.sort(key=_rank)
    return Inputs(
        command=tuple(command),
        definitions=tuple(definitions),
        samples=tuple(_placed(obj, namespace) for _, obj in objects),
        roles=None if rights is None else tuple(_roles(rights)),
        setup=setup,
        fields=fields,
        directory=directory,
        manager=manager,
        files=tuple(file for file, _ in objects),
    )


def look_for_program(inputs: Inputs) -> None:
    """Raise AuditError if the command's program is not there, or may not be run."""
    program = inputs.command[0]
    # The path of a kubeconfig is known later, and the setup may make the program.
    if KUBECONFIG in program or inputs.setup:
        return
    # A path begins in the folder in which the command is run; any other word is looked for on PATH.
    here = (inputs.directory or Path()).absolute()
    place = str(here / program) if "/" in program else program
    if which(place) is None:
        raise AuditError(
            f"the command does not start: {printable(program)} is not there, or may not be run",
            "after `--` comes the operator as it is started, such as `-- bin/manager`",
        )


def _paths(given: Path | Sequence[Path]) -> Sequence[Path]:
    return [given] if isinstance(given, Path) else given


def _named(given: Path | Sequence[Path]) -> str:
    return ", ".join(map(str, _paths(given)))


def _all_objects(given: Path | Sequence[Path]) -> Iterator[tuple[str, Object]]:
    """Yield the objects of files and of what is below directories, each with its file."""
    contents = (obj for path in _paths(given) for obj in texts(path, deep=True))
    for name, text in contents:
        if Path(name).name not in _KUSTOMIZATIONS:
            objects = (obj for obj in objects_in(name, text) if obj.get("kind") not in _SKIPPED)
            yield from ((name, _named_object(name, obj)) for obj in objects)


def _named_object(file: str, obj: Object) -> Object:
    if not obj.get("kind") or not obj.get("apiVersion"):
        raise AuditError(f"{file} has a document without apiVersion and kind")
    meta = obj.get("metadata")
    if not is_map(meta) or not isinstance(meta.get("name"), str) or not meta["name"]:
        raise AuditError(f"{file}: a {obj['kind']} has no metadata.name")
    return obj


def _placed(sample: Object, namespace: str) -> Object:
    """Return a sample in a namespace; one of a cluster-scoped kind is served without it."""
    meta = sample["metadata"]
    if "namespace" in meta or sample["kind"] in {"Namespace", "ClusterRole", "ClusterRoleBinding"}:
        return sample
    return {**sample, "metadata": {**meta, "namespace": namespace}}


def _rank(sample: tuple[str, Object]) -> int:
    """Return the place of a sample: namespaces first, then what others may need, then the rest."""
    first = {"Namespace": 0, "Secret": 1, "ConfigMap": 1, "ServiceAccount": 1}
    return first.get(sample[1]["kind"], 2)


def _roles(given: Path | Sequence[Path]) -> Iterator[Role]:
    """Yield the roles of files; if there are bindings too, those bound to a ServiceAccount."""
    objects, path = [obj for _, obj in _all_objects(given)], _named(given)
    roles = {
        (o["kind"], o["metadata"]["name"], _home(o) if o["kind"] == "Role" else ""): o
        for o in objects
        if o["kind"] in _ROLES
    }
    if not roles:
        raise AuditError(
            f"{path} has no ClusterRole and no Role; --rights names the operator's own"
        )
    bound = [o for o in objects if o["kind"] in _BINDINGS and _is_of_account(o)]
    if not bound:
        for (_, _, namespace), role in roles.items():
            yield _role(path, role, namespace)
    for binding in bound:
        ref: Object = binding.get("roleRef") or {}
        kind, name = ref.get("kind", ""), ref.get("name", "")
        role = roles.get((kind, name, _home(binding) if kind == "Role" else ""))
        if role is None:
            title = f"{kind} {name}"
            raise AuditError(f"{path} binds the {title}, which is not in it; add it to the file")
        yield _role(path, role, _home(binding) if binding["kind"] == "RoleBinding" else "")


def _home(obj: Object) -> str:
    return str(obj["metadata"].get("namespace") or OPERATOR)


def _is_of_account(binding: Object) -> bool:
    subjects: list[Object] = binding.get("subjects") or []
    return any(subject.get("kind") == "ServiceAccount" for subject in subjects)


def _role(path: str, role: Object, namespace: str) -> Role:
    name = role["metadata"]["name"]
    if role.get("aggregationRule"):
        raise AuditError(
            f"{path}: the ClusterRole {name} is put together from others (aggregationRule);"
            " give the rules themselves"
        )
    return Role(name, namespace, tuple(role.get("rules") or ()))


_ROLES: Final = frozenset({"ClusterRole", "Role"})
_BINDINGS: Final = frozenset({"ClusterRoleBinding", "RoleBinding"})
OPERATOR: Final = "audited-operator"
"""The namespace of the operator's ServiceAccount, and of its Roles without one."""
