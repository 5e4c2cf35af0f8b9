"""Widgets: a small operator in plain Python that does all well, or one thing wrong, as it is told.

    widgets.py NAMESPACE [FAULT]

It makes a ConfigMap and a Deployment of each Widget, by unforced applies of what differs, and
reports conflicts in the status. It knows nothing of hedgerow.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import sys
import threading
import time
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import yaml

Object = dict[str, Any]
GROUP = "example.org/v1"
FINALIZER = "example.org/widgets"
MANAGER = "widgets"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
BEAT = 5
"""Seconds from one write of a heartbeat to the next."""
MERGE = {"Content-Type": "application/merge-patch+json"}


def connection() -> httpx.Client:
    path = Path(os.environ["KUBECONFIG"])
    config = yaml.safe_load(path.read_text())
    cluster = config["clusters"][0]["cluster"]
    return httpx.Client(
        base_url=cluster["server"],
        headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
        verify=ssl.create_default_context(cafile=cluster["certificate-authority"]),
        timeout=20,
        trust_env=False,
    )


class Operator:
    def __init__(self, namespace: str, fault: str) -> None:
        self.http, self.fault = connection(), fault
        self.widgets = f"/apis/{GROUP}/namespaces/{namespace}/widgets"
        self.config = f"/api/v1/namespaces/{namespace}/configmaps"
        self.deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        self.queue: Queue[str] = Queue()

    def run(self) -> None:
        for path in (self.widgets, self.config, self.deployments):
            threading.Thread(target=self.watch, args=(path,), daemon=True).start()
        if self.fault == "heartbeat":
            threading.Thread(target=self.disturb, daemon=True).start()
        while True:
            name = self.queue.get()
            try:
                self.reconcile(name)
            except httpx.HTTPError:
                time.sleep(0.2)
                self.queue.put(name)

    def disturb(self) -> None:
        """Do again and again what nothing asks for."""
        while True:
            time.sleep(BEAT)
            try:
                for widget in self.http.get(self.widgets).raise_for_status().json()["items"]:
                    self.beat(widget)
            except httpx.HTTPError:
                pass

    def watch(self, path: str) -> None:
        while True:
            try:
                listed = self.http.get(path).raise_for_status().json()
                for item in listed["items"]:
                    self.note(item)
                version = listed["metadata"]["resourceVersion"]
                params = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "300"}
                with self.http.stream("GET", path, params=params, timeout=330) as lines:
                    for line in lines.iter_lines():
                        self.note(json.loads(line)["object"])
            except (httpx.HTTPError, KeyError):
                time.sleep(0.2)

    def note(self, item: Object) -> None:
        """Queue the Widget that an object is, or belongs to."""
        meta = item.get("metadata", {})
        owners = [one["name"] for one in meta.get("ownerReferences", ())]
        name = meta.get("name", "") if item.get("kind", "Widget") == "Widget" else ""
        for each in owners or [name]:
            if each:
                self.queue.put(each)

    def reconcile(self, name: str) -> None:
        widget = self.get(f"{self.widgets}/{name}")
        if widget is None:
            return None
        if widget["metadata"].get("deletionTimestamp"):
            return self.clean_up(widget)
        if FINALIZER not in widget["metadata"].get("finalizers", ()):
            widget = self.hold(widget)
        self.spoil(widget)
        wanted = self.children(widget)
        conflicts = [message for path, body in wanted if (message := self.ensure(path, body))]
        status: Object = {"ready": not conflicts}
        if conflicts:
            status["conflict"] = conflicts[0]
        told = {key: value for key, value in widget.get("status", {}).items() if key != "seen"}
        if told != status:
            seen = {k: v for k, v in widget.get("status", {}).items() if k == "seen"}
            body = {**identity(widget), "status": {**seen, **status}}
            self.apply(f"{self.widgets}/{name}/status", body)
        return None

    def hold(self, widget: Object) -> Object:
        body = identity(widget)
        body["metadata"]["finalizers"] = [FINALIZER]
        path = f"{self.widgets}/{widget['metadata']['name']}"
        return self.apply(path, body).raise_for_status().json()

    def spoil(self, widget: Object) -> None:
        if self.fault == "forced-apply" and widget["spec"]["size"] < 3:
            path = f"{self.widgets}/{widget['metadata']['name']}"
            body = {**identity(widget), "spec": {"size": 3}}
            body["metadata"]["finalizers"] = [FINALIZER]
            self.apply(path, body, force="true").raise_for_status()

    def children(self, widget: Object) -> list[tuple[str, Object]]:
        name, uid = widget["metadata"]["name"], widget["metadata"]["uid"]
        owner = {"apiVersion": GROUP, "kind": "Widget", "name": name, "uid": uid}
        meta = {"name": f"{name}-widget", "labels": {"widget": name}, "ownerReferences": [owner]}
        labels = {"widget": name}
        spec = widget["spec"]
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"message": spec["message"], "interval": spec["interval"]},
        }
        container = {"name": "main", "image": f"widget:{spec['size']}"}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [container]},
                },
            },
        }
        return [
            (f"{self.config}/{meta['name']}", config),
            (f"{self.deployments}/{meta['name']}", deployment),
        ]

    def ensure(self, path: str, body: Object) -> str:
        """Apply what differs; return why it cannot be."""
        live = self.get(path)
        if live is not None and (contains(live, body) or self.fault == "looks-away"):
            return ""
        if self.fault == "takes-back":
            self.apply(path, body, force="true").raise_for_status()
            return ""
        if self.fault == "drops-labels" and live and live["kind"] == "ConfigMap":
            version = live["metadata"]["resourceVersion"]
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
            self.http.put(path, json=body, params={"fieldManager": MANAGER})
            return ""
        reply = self.apply(path, body)
        return "" if reply.is_success else reply.json()["message"]

    def clean_up(self, widget: Object) -> None:
        if FINALIZER not in widget["metadata"].get("finalizers", ()):
            return
        for path, _ in self.children(widget):
            live = self.get(path)
            if live:
                guard = {"preconditions": {"uid": live["metadata"]["uid"]}}
                self.http.request("DELETE", path, json=guard)
        path = f"{self.widgets}/{widget['metadata']['name']}"
        if self.fault == "forced-apply":  # without the spec that it applied before, it is invalid
            self.http.patch(path, json={"metadata": {"finalizers": None}}, headers=MERGE)
            return
        self.apply(path, identity(widget))

    def beat(self, widget: Object) -> None:
        status = {**widget.get("status", {}), "seen": str(time.monotonic())}
        path = f"{self.widgets}/{widget['metadata']['name']}/status"
        body = identity({"apiVersion": GROUP, "kind": "Widget", **widget})
        self.apply(path, {**body, "status": status})

    def get(self, path: str) -> Object | None:
        reply = self.http.get(path)
        return None if reply.status_code == 404 else reply.raise_for_status().json()

    def apply(self, path: str, body: Object, **more: str) -> httpx.Response:
        params = {"fieldManager": MANAGER, **more}
        return self.http.patch(path, content=json.dumps(body), headers=APPLY, params=params)


def identity(obj: Object) -> Object:
    names = {name: obj["metadata"][name] for name in ("name", "namespace")}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": names}


def contains(live: Any, wanted: Any) -> bool:
    """Return whether all that is wanted is there."""
    if isinstance(wanted, dict):
        return all(contains(live.get(k) if live else None, v) for k, v in wanted.items())
    if isinstance(wanted, list):
        return isinstance(live, list) and all(any(contains(i, w) for i in live) for w in wanted)
    return live == wanted


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Operator(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "").run()
