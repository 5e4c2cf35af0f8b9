"""Programs: the binaries of a node with its control plane, which is the sandbox's."""

import os
from pathlib import Path

from hedgerow_testing.sandbox import toolchain
from hedgerow_testing.sandbox.binaries import ASSETS, Binaries
from hedgerow_testing.sandbox.blueprint import API_SERVER, CONTROLLERS, ETCD
from hedgerow_testing.sandbox.build import build
from hedgerow_testing.sandbox.locks import Progress
from hedgerow_testing.sandbox.pins import Module, PinnedRelease, pick

KUBELET, KUBE_PROXY = "kubelet", "kube-proxy"
NODE = (KUBELET, KUBE_PROXY)
CONTROL_PLANE = (ETCD, API_SERVER, *CONTROLLERS)

_MINOR = "1.37"
_MODULE = Path(__file__).parent / "modules" / f"node-{_MINOR}"
_PACKAGES = {name: f"k8s.io/kubernetes/cmd/{name}" for name in NODE}


def release() -> PinnedRelease:
    """Return the Kubernetes that the node is of."""
    return pick(_MINOR)


def module() -> Module:
    """Return the node's own module, of the sandbox's Kubernetes and stamped the same."""
    same = release().kubernetes
    return Module(_MODULE, same.version, _PACKAGES, same.ldflags, same.go)


async def find(progress: Progress, mark: dict[str, str]) -> dict[str, Path]:
    """Return every program's path, kubectl's included, building what is nowhere.

    KUBEBUILDER_ASSETS comes first, as in the sandbox. `mark` is added to a build's environment.
    Raises SandboxError when something cannot be built.
    """
    plane = Binaries(release(), progress, exact=True, mark=mark)
    found = await plane.find([*CONTROL_PLANE, "kubectl"])
    assets = Path(os.environ.get(ASSETS) or os.devnull)
    ready = {name: assets / name for name in NODE if os.access(assets / name, os.X_OK)}
    ready |= {
        name: path
        for name in NODE
        if name not in ready and (path := plane.cache.find(module(), name))
    }
    missing = [name for name in NODE if name not in ready]
    if missing:
        go = await toolchain.find(module().go)
        await build(plane.cache, module(), missing, go, progress=progress, mark=mark)
        ready |= {name: plane.cache.entry(module()) / name for name in missing}
    return found | ready
