"""Configuration: what containerd, its network plugins and the kubelet read."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from e2e.node.init import POD_BRIDGE

PODS = "10.244.0.0/24"
PAUSE_IMAGE = "localhost/pause:e2e"
SOCKET = "/run/containerd/containerd.sock"
"""In the node's own /run."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Writes the files below `root`; pods live in `cgroup`, and `authority` signs their clients."""

    root: Path
    cgroup: str
    authority: Path
    network_plugins: Path

    @property
    def containerd(self) -> Path:
        return self.root / "containerd.toml"

    @property
    def kubelet(self) -> Path:
        return self.root / "kubelet.json"

    def write(self) -> None:
        networks = self.root / "networks"
        networks.mkdir(parents=True)
        (self.root / "resolv.conf").touch()
        self.containerd.write_text(_toml(self._containerd(networks)), "utf-8")
        (networks / "10-pods.conflist").write_text(json.dumps(_NETWORK), "utf-8")
        self.kubelet.write_text(json.dumps(self._kubelet()), "utf-8")

    def _containerd(self, networks: Path) -> dict[str, dict[str, object]]:
        interface = 'plugins."io.containerd.grpc.v1.cri"'
        runtimes = f"{interface}.containerd.runtimes.runc"
        return {
            "": {"version": 2, "root": str(self.root / "containerd"), "state": "/run/containerd"},
            "grpc": {"address": SOCKET},
            'plugins."io.containerd.internal.v1.opt"': {"path": str(self.root / "opt")},
            interface: {
                "sandbox_image": PAUSE_IMAGE,
                # Without CAP_SYS_RESOURCE a pod's score cannot be lower than containerd's own.
                "restrict_oom_score_adj": True,
            },
            f"{interface}.containerd": {
                "snapshotter": "overlayfs",
                "default_runtime_name": "runc",
            },
            runtimes: {"runtime_type": "io.containerd.runc.v2"},
            f"{runtimes}.options": {
                "SystemdCgroup": False,
                # crun refuses a cgroup 2 beside version 1 that still has a controller.
                "BinaryName": shutil.which("runc") or "runc",
            },
            f"{interface}.cni": {"bin_dir": str(self.network_plugins), "conf_dir": str(networks)},
        }

    def _kubelet(self) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup}",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self.authority)},
            },
            "authorization": {"mode": "Webhook"},
            "podLogsDir": str(self.root / "pods"),
            "volumePluginDir": str(self.root / "volume-plugins"),
            # There is no DNS in the cluster, and none for it outside.
            "resolvConf": str(self.root / "resolv.conf"),
            "failSwapOn": False,
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
            },
            "imageGCHighThresholdPercent": 100,
            # A test waits for a probe's answer to show, not for a production's calm.
            "nodeStatusUpdateFrequency": "2s",
            "syncFrequency": "10s",
            "registryPullQPS": 0,
            "serializeImagePulls": False,
            "maxPods": 60,
        }


_NETWORK = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": POD_BRIDGE,
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": PODS}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


def _toml(tables: dict[str, dict[str, object]]) -> str:
    """Write tables of plain values; TOML spells those as JSON."""
    lines: list[str] = []
    for name, table in tables.items():
        lines += [f"[{name}]"] if name else []
        lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"
