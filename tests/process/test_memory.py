"""Cgroups: the limit of memory, wherever the kernel tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hedgerow.process.memory import memory_limit

V1 = "9:name=systemd:/\n4:memory:/kubepods/pod1/c\n0::/\n"
V2 = "0::/kubepods/pod1/c\n"
NONE = "9223372036854771712\n"


def system(root: Path, membership: str, **limits: str) -> Path:
    """Lay out what the kernel shows; a limit's name is its file below `/sys/fs/cgroup`."""
    for name, text in {"proc/self/cgroup": membership, **limits}.items():
        file = root / (name if name.startswith("proc") else f"sys/fs/cgroup/{name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


CASES = {
    "version 2": (V2, {"kubepods/pod1/c/memory.max": "536870912\n"}, 536870912),
    "version 2, of all in the pod": (V2, {"kubepods/pod1/memory.max": "7\n"}, 7),
    "version 2, in a container": (V2, {"memory.max": "536870912\n"}, 536870912),
    "version 2, without a limit": (V2, {"memory.max": "max\n"}, None),
    "version 1": (V1, {"memory/kubepods/pod1/c/memory.limit_in_bytes": "5\n"}, 5),
    "version 1, in a container": (V1, {"memory/memory.limit_in_bytes": "5\n"}, 5),
    "version 1, without a limit": (V1, {"memory/memory.limit_in_bytes": NONE}, None),
    "both versions": (V1, {"memory/memory.limit_in_bytes": "5\n", "memory.max": "4\n"}, 4),
    "the lowest counts": (
        V2,
        {"kubepods/memory.max": "9\n", "kubepods/pod1/memory.max": "8\n", "memory.max": "max\n"},
        8,
    ),
}


class TestLimit:
    @pytest.mark.parametrize("case", CASES)
    def test_it_is_read_from_the_kernel(self, case, tmp_path):
        membership, limits, expected = CASES[case]

        assert memory_limit(system(tmp_path, membership, **limits)) == expected

    def test_a_system_without_cgroups_has_none(self, tmp_path):
        assert memory_limit(tmp_path) is None
