"""Builtin: tolerant views of Kubernetes's own objects, as far as composing reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from hedgerow_schemas.base import ApiResource, Object, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

POD_TEMPLATE_HASH = "pod-template-hash"
LONGEST_TEXT = 600
"""The most characters that a cache keeps of what a condition says."""
CONTAINERS = ("initContainerStatuses", "containerStatuses")
POD_IDENTITY = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
)


def _entry(entries: tuple[Any, ...], key: str, value: str | bool) -> Object:
    """Return the first list item whose `key` holds `value`, or an empty map."""
    for entry in entries:
        if isinstance(entry, dict):
            item = cast("Object", entry)
            if item.get(key) == value:
                return item
    return {}


def _container(status: Any) -> Object:
    """Return a container's status with only the reason why it waits."""
    state: Object = {}
    if reason := View(status).text("state", "waiting", "reason"):
        state["waiting"] = {"reason": reason}
    return {"state": state} if state else {}


def _kept_conditions(pod: View) -> Iterator[Object]:
    """Yield a pod's `Ready`, and `PodScheduled` if that is false, with the beginning of their text.

    Whoever may write the status of pods may write a text of any length.
    """
    for kind in ("Ready", "PodScheduled"):
        entry = _entry(pod.items("status", "conditions"), "type", kind)
        view = View(entry)
        if entry and (kind == "Ready" or view.text("status") == "False"):
            yield {key: v[:LONGEST_TEXT] if isinstance(v, str) else v for key, v in entry.items()}


class WithConditions(View):
    """A view of an object whose status has conditions."""

    __slots__ = ()

    def condition(self, kind: str) -> str:
        """Return a condition's status (`True`, `False`, `Unknown`); empty if it is absent."""
        return View(_entry(self.items("status", "conditions"), "type", kind)).text("status")

    def reason(self, kind: str) -> str:
        """Return a condition's reason; empty if it is absent."""
        return View(_entry(self.items("status", "conditions"), "type", kind)).text("reason")

    def message(self, kind: str) -> str:
        """Return a condition's message, as somebody else wrote it; empty if it is absent."""
        return View(_entry(self.items("status", "conditions"), "type", kind)).text("message")


class Service(View):
    """A Service: where it sends its traffic."""

    api: ClassVar[ApiResource] = ApiResource("v1", "Service", "services")
    __slots__ = ()

    @property
    def selector(self) -> Mapping[str, Any]:
        """`spec.selector`."""
        return self.mapping("spec", "selector")

    @property
    def ports(self) -> tuple[Any, ...]:
        """`spec.ports`."""
        return self.items("spec", "ports")

    @property
    def cluster_ip(self) -> str:
        """`spec.clusterIP`: an address, `None` for a headless Service."""
        return self.text("spec", "clusterIP")


class PodDisruptionBudget(View):
    """A PodDisruptionBudget: how many pods an eviction may take at a time."""

    api: ClassVar[ApiResource] = ApiResource(
        "policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"
    )
    __slots__ = ()


class Deployment(WithConditions):
    """A Deployment: how far its rollout is."""

    api: ClassVar[ApiResource] = ApiResource("apps/v1", "Deployment", "deployments")
    __slots__ = ()

    @property
    def generation(self) -> int:
        """`metadata.generation`: the newest specification that the server holds."""
        return self.number("metadata", "generation")

    @property
    def observed_generation(self) -> int:
        """`status.observedGeneration`: the specification that the status is about."""
        return self.number("status", "observedGeneration")

    @property
    def selector(self) -> Mapping[str, Any]:
        """`spec.selector`: a label selector, immutable."""
        return self.mapping("spec", "selector")

    @property
    def replicas(self) -> int:
        """`spec.replicas`: how many pods are wanted."""
        return self.number("spec", "replicas")

    @property
    def paused(self) -> bool:
        """`spec.paused`: whether the newest template waits until somebody resumes the rollout."""
        return self.at("spec", "paused") is True

    @property
    def pod_spec(self) -> Mapping[str, Any]:
        """`spec.template.spec`: what its pods are made of."""
        return self.mapping("spec", "template", "spec")

    @property
    def status_replicas(self) -> int:
        """`status.replicas`: how many pods there are, of any generation."""
        return self.number("status", "replicas")

    @property
    def updated_replicas(self) -> int:
        """`status.updatedReplicas`: how many pods have the newest template."""
        return self.number("status", "updatedReplicas")

    @property
    def ready_replicas(self) -> int:
        """`status.readyReplicas`: how many pods are ready."""
        return self.number("status", "readyReplicas")

    @property
    def available_replicas(self) -> int:
        """`status.availableReplicas`: how many pods have been ready long enough."""
        return self.number("status", "availableReplicas")


class StatefulSet(WithConditions):
    """A StatefulSet: how many pods are wanted."""

    api: ClassVar[ApiResource] = ApiResource("apps/v1", "StatefulSet", "statefulsets")
    __slots__ = ()

    @property
    def replicas(self) -> int:
        """`spec.replicas`: how many pods are wanted."""
        return self.number("spec", "replicas")


class HorizontalPodAutoscaler(View):
    """A HorizontalPodAutoscaler: what it scales."""

    api: ClassVar[ApiResource] = ApiResource(
        "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"
    )
    __slots__ = ()

    @property
    def target(self) -> tuple[str, str]:
        """`spec.scaleTargetRef`: kind and name of the object that it scales."""
        reference = View(self.mapping("spec", "scaleTargetRef"))
        return reference.text("kind"), reference.text("name")


class ConfigMap(View):
    """A ConfigMap: its text."""

    api: ClassVar[ApiResource] = ApiResource("v1", "ConfigMap", "configmaps")
    __slots__ = ()

    @property
    def data(self) -> Mapping[str, Any]:
        """`data`: text by key."""
        return self.mapping("data")


class Secret(View):
    """A Secret: its type and values."""

    api: ClassVar[ApiResource] = ApiResource("v1", "Secret", "secrets")
    CREDENTIALS: ClassVar[tuple[str, ...]] = (
        "bootstrap.kubernetes.io/token",
        "kubernetes.io/service-account-token",
    )
    """The types by which the control plane gives somebody's rights to whoever has the Secret."""
    __slots__ = ()

    @property
    def type(self) -> str:
        """`type`: what the values are for; it is immutable."""
        return self.text("type")

    @property
    def data(self) -> Mapping[str, Any]:
        """`data`: values by key, in base64."""
        return self.mapping("data")

    @property
    def immutable(self) -> bool:
        """`immutable`: whether the API server refuses every change of the values."""
        return self.at("immutable") is True


class Namespace(View):
    """A Namespace: whether objects can be created in it."""

    api: ClassVar[ApiResource] = ApiResource("v1", "Namespace", "namespaces", namespaced=False)
    __slots__ = ()

    @property
    def terminating(self) -> bool:
        """Whether it is being deleted; the API server creates nothing in it any more."""
        return bool(self.at("metadata", "deletionTimestamp"))


class Pod(WithConditions):
    """A Pod: whether it is ready, and otherwise what it waits for."""

    api: ClassVar[ApiResource] = ApiResource("v1", "Pod", "pods")
    __slots__ = ()

    @staticmethod
    def reduced(pod: Object) -> Object:
        """Return only the fields that this view reads, as caches have thousands of pods."""
        view = View(pod)
        kept = {key: view.at("metadata", key) for key in POD_IDENTITY}
        owner = _entry(view.items("metadata", "ownerReferences"), "controller", True)
        conditions = [*_kept_conditions(view)]
        containers = {k: [_container(s) for s in view.items("status", k)] for k in CONTAINERS}
        node = view.text("spec", "nodeName")
        address = view.text("status", "podIP")
        return {
            "apiVersion": pod.get("apiVersion"),
            "kind": pod.get("kind"),
            "metadata": {
                **{key: value for key, value in kept.items() if value},
                "ownerReferences": [owner] if owner else [],
            },
            **({"spec": {"nodeName": node}} if node else {}),
            "status": {
                "phase": view.text("status", "phase"),
                **({"podIP": address} if address else {}),
                "conditions": conditions,
                **containers,
            },
        }

    @property
    def node_name(self) -> str:
        """`spec.nodeName`; empty until it is scheduled."""
        return self.text("spec", "nodeName")

    @property
    def created(self) -> str:
        """`metadata.creationTimestamp`; as text it sorts by time."""
        return self.text("metadata", "creationTimestamp")

    @property
    def address(self) -> str:
        """`status.podIP`, the first one of several; empty until the pod has one."""
        return self.text("status", "podIP")

    @property
    def phase(self) -> str:
        """`status.phase`."""
        return self.text("status", "phase")

    @property
    def active(self) -> bool:
        """Whether it counts as a replica: it has not ended and is not being deleted.

        The rule is that of the ReplicaSet controller (`controller.IsPodActive`).
        """
        going = self.at("metadata", "deletionTimestamp")
        return not going and self.phase not in ("Succeeded", "Failed")

    @property
    def ready(self) -> bool:
        """Whether the condition `Ready` is `True`."""
        return self.condition("Ready") == "True"

    @property
    def waiting_reason(self) -> str:
        """The first reason why a container waits (`ImagePullBackOff`, …), or empty.

        Init containers come first, since the others wait for them.
        """
        reasons = (View(status).text("state", "waiting", "reason") for status in self._statuses())
        return next(filter(None, reasons), "")

    @property
    def why_not_ready(self) -> str:
        """Why it is not ready, as its writers say; empty if it is, has ended, or nobody says why.

        That is why no node takes it, why a container waits, or which container or readiness gate is
        not ready.
        """
        if not self.active:
            return ""
        if self.condition("PodScheduled") == "False":
            return self.message("PodScheduled") or self.reason("PodScheduled")
        if self.waiting_reason or self.condition("Ready") != "False":
            return self.waiting_reason
        return self.message("Ready") or self.reason("Ready")

    @property
    def controller_uid(self) -> str:
        """The uid of what controls the pod, such as a Job; empty if nothing does."""
        owner = _entry(self.items("metadata", "ownerReferences"), "controller", True)
        return View(owner).text("uid")

    @property
    def deployment(self) -> str:
        """The name of the Deployment of the pod's ReplicaSet, or empty.

        A Deployment names its ReplicaSets `<deployment>-<pod-template-hash>`, and the hash is
        a label of the pod. So it is not necessary to read ReplicaSets.
        """
        owner = View(_entry(self.items("metadata", "ownerReferences"), "kind", "ReplicaSet"))
        suffix = f"-{View(self.labels).text(POD_TEMPLATE_HASH)}"
        name = owner.text("name")
        return name.removesuffix(suffix) if name.endswith(suffix) and len(suffix) > 1 else ""

    def _statuses(self) -> Iterator[Any]:
        for key in CONTAINERS:
            yield from self.items("status", key)


class EndpointSlice(View):
    """An EndpointSlice: which pods a Service sends its traffic to."""

    api: ClassVar[ApiResource] = ApiResource(
        "discovery.k8s.io/v1", "EndpointSlice", "endpointslices"
    )
    SERVICE: ClassVar[str] = "kubernetes.io/service-name"
    """The label that names the Service."""
    __slots__ = ()

    @staticmethod
    def reduced(endpoint_slice: Object) -> Object:
        """Return only the fields that this view reads."""
        view = View(endpoint_slice)
        kept = {key: view.at("metadata", key) for key in POD_IDENTITY}
        return {
            "apiVersion": endpoint_slice.get("apiVersion"),
            "kind": endpoint_slice.get("kind"),
            "metadata": {key: value for key, value in kept.items() if value},
            "endpoints": [
                {
                    "targetRef": {"name": View(endpoint).text("targetRef", "name")},
                    "conditions": {"ready": _is_ready(endpoint)},
                }
                for endpoint in view.items("endpoints")
            ],
        }

    @property
    def service(self) -> str:
        """The name of the Service, or empty."""
        return View(self.labels).text(self.SERVICE)

    @property
    def ready_pods(self) -> tuple[str, ...]:
        """The names of the pods that are ready here; an endpoint that does not say so is."""
        ready = (View(endpoint) for endpoint in self.items("endpoints") if _is_ready(endpoint))
        return tuple(name for view in ready if (name := view.text("targetRef", "name")))


def _is_ready(endpoint: Any) -> bool:
    return View(endpoint).at("conditions", "ready") is not False
