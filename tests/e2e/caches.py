"""Cache: a Memcached, and the servers behind its headless Service."""

from e2e.node.images import MEMCACHED
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually

_SOON = 120.0


class Cache:
    """A Memcached of the node's own image in a namespace."""

    def __init__(self, api: Api, namespace: str, name: str = "cache") -> None:
        self._api = api
        self._namespace, self._name = namespace, name
        metadata = {"namespace": namespace, "name": name}
        version = "memcached.cache.example.com/v1"
        self.target = {"apiVersion": version, "kind": "Memcached", "metadata": metadata}

    def apply(self, size: int) -> None:
        """Apply it with that size."""
        spec = {"size": size, "image": MEMCACHED}
        self._api.apply({**self.target, "spec": spec}, "user").must()

    def sized(self, size: int) -> list[str]:
        """Apply it with that size, and give the addresses of its servers once they are ready."""
        self.apply(size)
        return self.servers(size)

    def servers(self, size: int) -> list[str]:
        """Wait until so many are ready, and give their addresses."""
        eventually(lambda: self.status().get("readyReplicas") == size, _SOON, f"{size} replicas")
        return eventually(lambda: self._addresses(size), _SOON, f"{size} addresses")

    def live(self) -> Object:
        """Return the Memcached."""
        return self._api.get(self.target).must()

    def status(self) -> Object:
        """Return its status; empty when there is none."""
        return self.live().get("status", {})

    def complete(self, size: int) -> Object:
        """Return its status if that names so many nodes and endpoints; otherwise an empty map."""
        status = self.status()
        named = {len(status.get(field, [])) for field in ("nodes", "endpoints")}
        return status if named == {size} else {}

    def condition(self, kind: str) -> str:
        """Return `status/reason` of a condition; empty when it is absent."""
        found = (c for c in self.status().get("conditions", []) if c["type"] == kind)
        return next((f"{c['status']}/{c['reason']}" for c in found), "")

    def _addresses(self, size: int) -> list[str]:
        """Return the addresses as DNS would, if there are so many."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{self._namespace}/endpointslices"
        params = {"labelSelector": f"kubernetes.io/service-name={self._name}"}
        slices = self._api.raw("GET", path, params=params).must()["items"]
        ready = [e for s in slices for e in s["endpoints"] or () if e["conditions"]["ready"]]
        found = sorted(address for endpoint in ready for address in endpoint["addresses"])
        return found if len(found) == size else []
