"""Metrics and health of the operator in the cluster: who is told what, and by whom."""

import ssl

import httpx
import pytest
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

from e2e import scraping
from e2e.deployment import REPLICAS, Deployment
from e2e.node.node import Node
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(360)]

HEALTH = 8081
SOON = 90.0


@pytest.fixture
def trusted(deployment: Deployment, api: Api) -> str:
    """The certificates that the operator publishes in `caBundle`."""
    return scraping.trusted(api)


@pytest.fixture
def service(deployment: Deployment, api: Api) -> str:
    """The address of `hedgerow-metrics`."""
    return scraping.address(api)


class TestMetrics:
    def test_a_reader_is_told_by_each_replica_and_one_of_them_leads(
        self,
        deployment: Deployment,
        node: Node,
        api: Api,
        namespace: str,
        service: str,
        trusted: str,
    ):
        """Fact: a Service leads to replicas in pods of their own."""
        token = scraping.account(node, api, namespace, "reader")
        binding = scraping.reader(api, namespace, "reader")
        leader = deployment.leader()
        try:
            told = eventually(lambda: scraping.told(service, trusted, token), SOON, "the metrics")
            each = {
                pod["metadata"]["name"]: eventually(
                    lambda ip=pod["status"]["podIP"]: scraping.told(ip, trusted, token), SOON
                )
                for pod in deployment.pods()
            }
        finally:
            api.delete(binding).must()

        assert "# TYPE hedgerow_reconcile_total counter" in told
        assert len(each) == REPLICAS
        leading = [name for name, text in each.items() if sample(text, "hedgerow_leader") == 1]
        assert leading == [leader["metadata"]["name"]]
        assert all(sample(text, "hedgerow_reconcile_total") >= 0 for text in each.values())

    def test_it_shows_the_name_of_its_service_and_no_authority_knows_it(
        self, node: Node, service: str, trusted: str
    ):
        """Fact: the certificate that is shown at the Service's address."""
        shown = ssl.get_server_certificate((service, scraping.PORT), timeout=10)
        names = x509.load_pem_x509_certificate(shown.encode()).extensions
        alternatives = names.get_extension_for_class(x509.SubjectAlternativeName).value
        others = (node.kubeconfig.parent / "pki" / "ca.crt").read_text("utf-8")

        assert scraping.NAME in alternatives.get_values_for_type(x509.DNSName)
        assert scraping.scrape(service, trusted).status_code == 401
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            scraping.scrape(service, others)

    def test_nothing_is_told_over_plain_http(self, service: str):
        """Fact: what answers at the Service's port without TLS."""
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"http://{service}:{scraping.PORT}/metrics", trust_env=False)


def sample(text: str, name: str) -> float:
    """Return the sum of a metric's samples."""
    families = text_string_to_metric_families(text)
    return sum(s.value for family in families for s in family.samples if s.name == name)


class TestHealth:
    def test_asked_for_all_it_names_each_check(self, deployment: Deployment):
        """Fact: what a kubelet's probes are answered in a pod."""
        for replica in deployment.pods():
            told = [asked(replica, f"{path}?verbose") for path in ("healthz", "livez", "readyz")]
            (live, _, ready) = (text for _, text in told)
            assert [code for code, _ in told] == [200] * 3
            assert live.startswith("[+]loop ok\n")
            assert live.endswith("healthz check passed\n")
            assert {"[+]shutdown ok", "[+]caches ok", "[+]certificate ok"} <= {*ready.splitlines()}


def asked(replica: Object, path: str) -> tuple[int, str]:
    """Ask a pod as the kubelet's probes do."""
    url = f"http://{replica['status']['podIP']}:{HEALTH}/{path}"
    answer = httpx.get(url, trust_env=False, timeout=10)
    return answer.status_code, answer.text
