"""Init: the first process of a node's namespaces; everything there ends with it.

Run by the keeper with nothing but the standard library.
"""

import signal
import subprocess
import sys
from pathlib import Path

ADDRESS = "172.31.77.1"
"""The node's own; the network is its own too, so it is nobody else's."""

POD_BRIDGE = "pods0"
_BRIDGE = "node0"
_POD_BRIDGE_HARDWARE = "02:00:ac:1f:4d:01"
_COVERED = ("/var/lib", "/var/log")
"""Where the programs insist on writing: nothing of it reaches the machine."""

_FORWARDING = ("net.ipv4.ip_forward=1", "net.bridge.bridge-nf-call-iptables=1")


def run(*command: str, check: bool = True) -> None:
    """Run a command, by default one that must not fail."""
    subprocess.run(command, check=check, stdout=sys.stderr)


def cover() -> None:
    """Give the node its own /run, and its own layer over what it writes to."""
    run("mount", "-t", "tmpfs", "node", "/run")
    for place in _COVERED:
        layer = Path("/run/covered") / place.strip("/").replace("/", "-")
        upper, work = layer / "upper", layer / "work"
        for directory in (upper, work):
            directory.mkdir(parents=True)
        options = f"lowerdir={place},upperdir={upper},workdir={work}"
        run("mount", "-t", "overlay", "node", "-o", options, place)
    run("mount", "--make-rshared", "/")


def connect() -> None:
    """Give the node an address and a way out, on which packets go nowhere."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", _BRIDGE, "type", "bridge")
    run("ip", "address", "add", f"{ADDRESS}/24", "dev", _BRIDGE)
    run("ip", "link", "set", _BRIDGE, "up")
    run("ip", "route", "add", "default", "dev", _BRIDGE)
    # A bridge without an address of its own takes the lowest of its ports': pods that come and go
    # would change it, and cut off all others for a moment (containernetworking/cni#285).
    own = ("address", _POD_BRIDGE_HARDWARE)
    run("ip", "link", "add", POD_BRIDGE, *own, "type", "bridge")
    # The second needs a kernel module, without which bridged packets pass anyway.
    for setting in _FORWARDING:
        run("sysctl", "-qw", setting, check=setting == _FORWARDING[0])


def main() -> None:
    """Furnish the namespaces, say so, and stay until the input ends."""
    cover()
    connect()
    # What outlives its parent is ours to bury; the kernel does it.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
