"""Machine: whether a real node can run here, and if not, exactly why."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from e2e.node.keeper import NAMESPACES

TOOLS = (
    *("unshare", "nsenter", "ip", "mount", "sysctl"),
    *("iptables", "conntrack", "containerd", "containerd-shim-runc-v2", "ctr", "runc"),
    *("buildah", "mmdebstrap"),
)
"""Of Debian's util-linux, iproute2, procps and mount, and of packages of their own names."""

_POLICY = Path("/etc/containers/policy.json")
"""Without it buildah touches no image; of Debian's golang-github-containers-common."""

_NETWORK_PLUGINS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
_NEEDED_PLUGINS = ("bridge", "host-local", "portmap", "loopback")
_CGROUPS = Path("/sys/fs/cgroup")
_TRY = ("unshare", *NAMESPACES, "--fork", "--mount-proc", "true")


def why_not() -> str:
    """Return the reason why no node can run here; "" when one can."""
    if sys.platform != "linux":
        return f"a node needs Linux, this is {sys.platform}"
    if os.geteuid() != 0:
        return "a node needs root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    missing += [] if _POLICY.exists() else [str(_POLICY)]
    if missing:
        return f"missing: {', '.join(missing)}"
    if network_plugins() is None:
        return f"missing: the CNI plugins {', '.join(_NEEDED_PLUGINS)}"
    if not os.access(_CGROUPS, os.W_OK):
        return f"{_CGROUPS} cannot be written"
    tried = subprocess.run(_TRY, capture_output=True, text=True, check=False, timeout=30)
    return f"no namespaces of our own: {tried.stderr.strip()}" if tried.returncode else ""


def network_plugins() -> Path | None:
    """Return the directory of the CNI plugins."""
    complete = (d for d in _NETWORK_PLUGINS if all((d / n).exists() for n in _NEEDED_PLUGINS))
    return next(complete, None)
