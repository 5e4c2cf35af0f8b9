"""Somebody: another field manager, who does to objects what people and other programs do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from typing import Protocol

    from hedgerow_testing.api import Object, Reply

    class SendsWrites(Protocol):
        """Where the requests go: `Api`, or a user of the cluster in memory."""

        def apply(
            self, manifest: Object, manager: str, *, force: bool = False, subresource: str = ""
        ) -> Reply:
            """Apply a manifest."""
            ...

        def merge(self, target: Object, patch: Any, manager: str, subresource: str = "") -> Reply:
            """Send a JSON merge patch."""
            ...

        def get(self, target: Object) -> Reply:
            """Read an object."""
            ...

        def delete(self, target: Object) -> Reply:
            """Delete an object."""
            ...


class SomebodyElse:
    """One field manager; every method raises AssertionError if the server refuses.

    A `target` is any manifest of the object, or what `target()` returns. Each method returns the
    object as it is afterwards.
    """

    def __init__(self, writer: SendsWrites, manager: str = "somebody-else") -> None:
        self._writer = writer
        self.manager = manager

    def called(self, manager: str) -> SomebodyElse:
        """Return the same user under the name of another field manager."""
        return SomebodyElse(self._writer, manager)

    def apply(self, manifest: Object, *, force: bool = False, subresource: str = "") -> Object:
        """Apply a manifest (server-side apply), as Argo CD, Flux and `kubectl apply` do."""
        reply = self._writer.apply(manifest, self.manager, force=force, subresource=subresource)
        return reply.must()

    def edit(self, target: Object, patch: Object, *, subresource: str = "") -> Object:
        """Change fields by a JSON merge patch, as `kubectl edit` does; null removes a field."""
        return self._writer.merge(identity(target), patch, self.manager, subresource).must()

    def scale(self, target: Object, replicas: int) -> Object:
        """Set the replicas by the scale subresource, as `kubectl scale` and autoscalers do."""
        self.edit(target, {"spec": {"replicas": replicas}}, subresource="scale")
        return self.read(target)

    def remove(self, target: Object, *path: str) -> Object:
        """Remove one field, whoever holds it: `remove(target, "data", "text")`."""
        patch: Any = None
        for name in reversed(path):
            patch = {name: patch}
        return self.edit(target, patch)

    def release(self, target: Object) -> Object:
        """Let go of all applied fields: those that nobody else holds are removed."""
        return self.apply(identity(target))

    def delete(self, target: Object) -> None:
        """Delete the object."""
        self._writer.delete(identity(target)).must()

    def read(self, target: Object) -> Object:
        """Return the object."""
        return self._writer.get(identity(target)).must()

    def must_hold(self, target: Object, *path: str) -> Any:
        """Return the value of a field that was set by this manager, and is still its alone.

        Raises AssertionError if another manager holds the field now, or holds it as well.
        """
        live = self.read(target)
        value: Any = live
        for name in path:
            value = cast("Object", value).get(name) if isinstance(value, dict) else None
        now = holders(live, *path)
        if now != [self.manager]:
            what = f"{'.'.join(path)} of {live['kind']}/{live['metadata']['name']}"
            others = ", ".join(now) or "nobody"
            raise AssertionError(
                f"{self.manager} set {what}; {others} holds it, and it is {value!r}"
            )
        return value


def target(api_version: str, kind: str, name: str, namespace: str = "") -> Object:
    """Return what identifies an object, for requests about it."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def identity(manifest: Object) -> Object:
    """Return what identifies the object of a manifest."""
    metadata = manifest["metadata"]
    return target(
        manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace", "")
    )


def holders(live: Object, *path: str) -> list[str]:
    """Return the field managers that hold a field: `holders(live, "data", "text")`, sorted.

    The path is of names of fields; a whole list or map counts for each manager of a part of it.
    """
    managers: set[str] = set()
    for entry in live["metadata"].get("managedFields", ()):
        node: Any = entry.get("fieldsV1") or {}
        for name in path:
            node = node.get(f"f:{name}") if node is not None else None
        if node is not None:
            managers.add(entry["manager"])
    return sorted(managers)
