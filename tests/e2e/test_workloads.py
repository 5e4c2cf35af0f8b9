"""Workloads: what the operator in the cluster makes of its resources, on a node that runs it."""

from datetime import datetime, timedelta

import pytest

from e2e import memcache
from e2e.caches import Cache
from e2e.node.images import MEMCACHED, PYTHON
from e2e.node.node import Node
from e2e.pods import container, finished, pod, spec, user
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually
from support.cluster import cronjobs
from support.cluster.cronjobs import SCHEDULED_AT, ended, seconds_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(360), pytest.mark.usefixtures("deployment")]

SOON = 120.0
KEYS = [f"key-{number}" for number in range(20)]
KEPT = "".join(f"{key}\n" for key in KEYS)
CLIENT = f"""
set -e
memcping --servers="$1"
cd /dev/shm
for key in {" ".join(KEYS)}; do printf %s $key >$key; memccp --servers="$1" $key; done
for key in {" ".join(KEYS)}; do memccat --servers="$1" $key; done
"""
"""The tools of libmemcached: a client that chooses a server for each key by itself."""


class TestMemcached:
    def test_each_server_is_one_of_its_own_and_keeps_what_it_has_when_kubectl_scales(
        self, node: Node, api: Api, namespace: str
    ):
        """Fact: memcached itself keeps values while others come."""
        cache = Cache(api, namespace)
        before = cache.sized(2)
        nodes = eventually(lambda: cache.complete(2), SOON, "both in the status")["nodes"]
        client = container(MEMCACHED, command=("sh", "-c", CLIENT, "client", ",".join(before)))

        assert finished(node, api, pod(namespace, "client", spec(client))) == ("Succeeded", KEPT)
        kept = first, second = tuple(map(held, before))
        assert first | second == {*KEYS}
        assert not first & second
        assert first
        assert second

        node.kubectl("scale", "-n", namespace, "memcached/cache", "--replicas=3")
        after = cache.servers(3)
        scale = node.get("-n", namespace, "memcached/cache", "--subresource=scale")

        assert cache.live()["spec"]["size"] == 3
        assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 3)
        status = eventually(lambda: cache.complete(3), SOON, "all in the status")
        assert (len(status["nodes"]), status["nodes"][:2]) == (3, nodes)
        names = {f"{address.replace('.', '-')}.cache.{namespace}.svc" for address in after}
        assert set(status["endpoints"]) == names
        assert set(before) < set(after)
        (new,) = set(after) - set(before)
        assert (*map(held, before), held(new)) == (*kept, set())


def held(server: str) -> set[str]:
    """Return the keys that a server knows."""
    return {key for key in KEYS if memcache.look_up(server, key) == key}


EVERY = timedelta(seconds=15)
SAY = "import os, time; time.sleep(5); print('ran as', os.getuid(), flush=True)"


class TestCronJob:
    def test_a_job_really_runs_is_told_of_and_goes_with_its_cronjob(
        self, node: Node, api: Api, namespace: str
    ):
        """Fact: a container runs, ends and is collected."""
        world = cronjobs.World(api, namespace)
        pods = user(container(PYTHON, command=("python3", "-c", SAY)))
        template = {"spec": {"backoffLimit": 0, "template": {"spec": pods}}}
        schedule = f"@every {EVERY.seconds}s"
        world.apply("tick", schedule, jobTemplate=template, concurrencyPolicy="Forbid")

        active = eventually(lambda: running(world), SOON, "a Job in status.active")
        world.edit("tick", suspend=True)
        job = eventually(lambda: complete(world), SOON, "the Job's end")
        label = f"job-name={job['metadata']['name']}"
        (ran,) = node.get("pods", "-n", namespace, "-l", label)["items"]
        log = node.kubectl("logs", "-n", namespace, ran["metadata"]["name"])
        start = datetime.fromisoformat(job["metadata"]["annotations"][SCHEDULED_AT])
        eventually(lambda: "active" not in world.status("tick"), SOON, "the end in the status")

        assert [ref["uid"] for ref in active["active"]] == [job["metadata"]["uid"]]
        assert active["activeCount"] == 1
        assert (ran["status"]["phase"], log) == ("Succeeded", "ran as 10001\n")
        assert start.timestamp() == seconds_of(job["metadata"]["name"])
        assert instant(active, "lastScheduleTime") == start
        assert instant(active, "nextScheduleTime") == start + EVERY
        status = world.status("tick")
        assert instant(status, "lastScheduleTime") == start
        assert status["lastSuccessfulTime"] == job["status"]["completionTime"]
        assert status["activeCount"] == 0

        world.delete("tick")
        eventually(lambda: not world.names("tick"), SOON, "the Job collected")
        eventually(lambda: not node.get("pods", "-n", namespace)["items"], SOON, "its pod gone")


def running(world: cronjobs.World) -> Object:
    """Return the status once it tells of a Job that runs."""
    status = world.status("tick")
    return status if status.get("active") else {}


def complete(world: cronjobs.World) -> Object:
    """Return the Job once it has succeeded."""
    (job,) = world.jobs("tick")
    assert not ended(job, "Failed"), job["status"]
    return job if ended(job, "Complete") else {}


def instant(status: Object, field: str) -> datetime:
    return datetime.fromisoformat(status[field])
