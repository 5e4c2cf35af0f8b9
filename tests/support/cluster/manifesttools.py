"""Manifest tools: kubectl in all its ways, Helm, Argo CD and Flux, as people bring manifests in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.sandbox.cluster import Sandbox
from support.helm.chart import Helm

Write = Callable[[Object], str]
"""Bring a manifest in; return why it was refused, or nothing."""

_EDITOR: Final = """
import json, sys, yaml
wanted, shown = sys.argv[1:]
live = yaml.safe_load(open(shown))
spec = {**live["spec"], **json.load(open(wanted))}
live["spec"] = {key: value for key, value in spec.items() if value is not None}
json.dump(live, open(shown, "w"))
"""


@dataclass
class Desk:
    """Where somebody sits: a server, a folder, and the programs; it knows what he wrote last."""

    sandbox: Sandbox
    api: Api
    folder: Path
    helm: Mapping[str, Path]
    written: Object = field(default_factory=dict[str, object])

    def shell(self, line: str, **more: str) -> str:
        """Run a pasted line; return what it says if it fails."""
        path = f"{self.sandbox.kubectl.parent}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.folder), **more}
        environment["KUBECONFIG"] = str(self.sandbox.kubeconfig)
        ended = subprocess.run(
            ["/bin/sh", "-c", line], env=environment, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        return ended.stderr if ended.returncode else ""

    def kubectl(self, *words: str) -> Write:
        """Return the way of a command that takes the whole manifest."""
        line = " ".join(["kubectl", *words, "-f", str(self.folder / "manifest.yaml")])

        def write(manifest: Object) -> str:
            (self.folder / "manifest.yaml").write_text(json.dumps(manifest))
            return self.shell(line)

        return write

    def changes(self, how: Callable[[Object, Object], str], *first: str) -> Write:
        """Return the way of somebody who changes fields, of what came with other `words`."""
        create = self.kubectl(*first)

        def write(manifest: Object) -> str:
            old, new = self.written.get("spec", {}), manifest["spec"]
            self.written = deepcopy(manifest)
            return how(manifest, {**dict.fromkeys(old), **new}) if old else create(manifest)

        return write

    def edit(self, manifest: Object, changes: Object) -> str:
        """Change fields in an editor."""
        script, wanted = self.folder / "edit.py", self.folder / "changes.yaml"
        script.write_text(_EDITOR)
        wanted.write_text(json.dumps(changes))
        line = f"kubectl edit {_named(manifest)}"
        return self.shell(line, KUBE_EDITOR=f"{sys.executable} {script} {wanted}")

    def patch(self, manifest: Object, changes: Object) -> str:
        """Change fields by `kubectl patch`."""
        file = self.folder / "patch.yaml"
        file.write_text(json.dumps({"spec": changes}))
        return self.shell(f"kubectl patch {_named(manifest)} --type merge --patch-file {file}")

    def dashboard(self, manifest: Object, changes: Object) -> str:
        """Change fields in a browser, which puts the whole object as it was read."""
        live = self.api.get(manifest).must()
        spec = {**live["spec"], **changes}
        live["spec"] = {key: value for key, value in spec.items() if value is not None}
        return refused(self.api.put(live, "Mozilla"))

    def release(self, program: str, *flags: str) -> Write:
        """Return the way of a Helm: a release of a chart with this one object."""
        helm = Helm(self.helm[program], self.folder, self.sandbox.kubeconfig)
        templates = self.folder / "chart" / "templates"

        def write(manifest: Object) -> str:
            templates.mkdir(parents=True, exist_ok=True)
            chart = {"apiVersion": "v2", "name": "shop", "version": "0.1.0"}
            (templates.parent / "Chart.yaml").write_text(json.dumps(chart))
            (templates / "object.yaml").write_text(json.dumps(manifest))
            words = ("upgrade", "--install", "shop", templates.parent, *flags)
            place = ("--namespace", manifest["metadata"]["namespace"])
            ended = helm(*words, *place, check=False)
            return ended.stderr if ended.returncode else ""

        return write

    def forced(self, manager: str) -> Write:
        """Return the way of Argo CD with server-side apply, and of Flux: always forced."""
        return lambda manifest: refused(self.api.apply(manifest, manager, force=True))


def refused(reply: Reply) -> str:
    """Return why a request was refused, or nothing."""
    return "" if reply.ok else str(reply.body.get("message"))


def _named(manifest: Object) -> str:
    return (
        f"{manifest['kind']} {manifest['metadata']['name']} -n {manifest['metadata']['namespace']}"
    )
