from __future__ import annotations

from hedgerow import workloads
from hedgerow.controllers.memcached import spread_over_nodes


class TestSecurity:
    def test_pods_run_as_the_given_user_and_never_as_root(self):
        context = workloads.unprivileged(7)

        assert (context["runAsUser"], context["runAsGroup"]) == (7, 7)
        assert context["runAsNonRoot"] is True
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}

    def test_containers_gain_nothing_and_write_nowhere(self):
        assert workloads.CONFINED["allowPrivilegeEscalation"] is False
        assert workloads.CONFINED["capabilities"] == {"drop": ["ALL"]}
        assert workloads.CONFINED["readOnlyRootFilesystem"] is True


class TestAnswers:
    def test_it_asks_for_a_connection_at_the_given_pace(self):
        assert workloads.answers(80, every=5, failures=2) == {
            "tcpSocket": {"port": 80},
            "periodSeconds": 5,
            "failureThreshold": 2,
        }


class TestSpreading:
    def test_every_list_key_is_spelled_out_and_nothing_is_kept_from_running(self):
        (constraint,) = spread_over_nodes({"matchLabels": {"a": "1"}})

        assert constraint["topologyKey"] == "kubernetes.io/hostname"
        assert constraint["whenUnsatisfiable"] == "ScheduleAnyway"
        assert constraint["labelSelector"] == {"matchLabels": {"a": "1"}}
