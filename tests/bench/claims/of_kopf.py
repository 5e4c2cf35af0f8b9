"""EphemeralVolumeClaim in kopf, in the style of the tutorial of kopf (docs.kopf.dev, MIT).

A claim makes a PersistentVolumeClaim of its name, of its size, with its labels.
"""

from pathlib import Path

import kopf
import kubernetes
import yaml

TEMPLATE = Path(__file__).with_name("pvc.yaml").read_text()


@kopf.on.login()
def log_in(**options):
    return kopf.login_with_kubeconfig(**options)


@kopf.on.startup()
def connect(**_):
    kubernetes.config.load_kube_config()


@kopf.on.create("ephemeralvolumeclaims")
def created(name, namespace, spec, **_):
    if not spec.get("size"):
        raise kopf.PermanentError("spec.size is not set")
    body = yaml.safe_load(TEMPLATE.format(name=name, size=spec["size"]))
    kopf.adopt(body)  # the owner reference, and the claim's labels
    made = kubernetes.client.CoreV1Api().create_namespaced_persistent_volume_claim(namespace, body)
    return {"name": made.metadata.name}


@kopf.on.update("ephemeralvolumeclaims", field="spec.size")
def resized(new, namespace, status, **_):
    change(namespace, status, {"spec": {"resources": {"requests": {"storage": new}}}})


@kopf.on.field("ephemeralvolumeclaims", field="metadata.labels")
def relabelled(old, new, namespace, status, **_):
    if "created" in status:  # at first, the labels are those of `created`
        labels = dict.fromkeys(old or ()) | (new or {})  # null removes one
        change(namespace, status, {"metadata": {"labels": labels}})


def change(namespace, status, patch):
    api = kubernetes.client.CoreV1Api()
    name = status["created"]["name"]
    api.patch_namespaced_persistent_volume_claim(name, namespace, patch)
