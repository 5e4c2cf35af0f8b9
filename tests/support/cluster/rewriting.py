"""Rewriting: admission that changes on its way what one namespace's Deployments declare."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from hedgerow_testing.api import Api, Object
from support.cluster.bluegreens import World, pods

GROUP = "admissionregistration.k8s.io"
IMAGE = "mirror.example/echo:1"
_PATCH = (
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
    "containers: object.spec.template.spec.containers.map(c,"
    f' Object.spec.template.spec.containers{{name: c.name, image: "{IMAGE}"}})}}}}}}}}'
)


@contextmanager
def rewriting(api: Api, namespace: str) -> Generator[None]:
    """Have every image of the namespace's Deployments replaced; the server needs a moment."""
    version = f"{GROUP}/v1"
    if "mutatingadmissionpolicies" not in str(api.raw("GET", f"/apis/{version}").body):
        version = f"{GROUP}/v1beta1"
    made = [_policy(namespace), {"kind": "MutatingAdmissionPolicyBinding", "spec": {}}]
    made[1]["spec"] = {"policyName": namespace}
    for manifest in made:
        manifest |= {"apiVersion": version, "metadata": {"name": namespace}}
        api.apply(manifest, "test").must()
    try:
        yield
    finally:
        for manifest in reversed(made):
            api.delete(manifest).must()


def rewrites(world: World) -> bool:
    """Return whether the policy is in force in a namespace."""
    labels = {"app": "probe"}
    template = {"metadata": {"labels": labels}, "spec": pods("one")}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    probe = {**world.target("Deployment", "probe"), "spec": spec}
    tried = world.api.apply(probe, "test", dry_run=True).must()
    return tried["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE


def _policy(namespace: str) -> Object:
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "resources": ["deployments"],
        "operations": ["CREATE", "UPDATE"],
    }
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": _PATCH}}
    chosen = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": chosen},
        "mutations": [mutation],
        "reinvocationPolicy": "Never",
        "failurePolicy": "Fail",
    }
    return {"kind": "MutatingAdmissionPolicy", "spec": spec}
