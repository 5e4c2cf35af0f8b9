"""The options of secretsync: which Secrets are copied to which namespaces, and the rights."""

from __future__ import annotations

import pytest

from hedgerow import Secret
from hedgerow.controllers.secretsync.controller import configured
from hedgerow.controllers.secretsync.options import Selection, selects
from hedgerow.deploy.rights import by_namespace, of_controllers
from hedgerow.registry import Registry

LABELS = {"team": "a", "sync": "yes", "empty": ""}


class TestSelector:
    @pytest.mark.parametrize(
        ("selector", "chosen"),
        [
            ("", True),
            ("sync=yes", True),
            ("sync == yes, team!=b", True),
            ("sync=no", False),
            ("sync", True),
            ("!sync", False),
            ("!other,sync", True),
            ("team in (a, b)", True),
            ("team in (b)", False),
            ("team notin (b),other!=x", True),
            ("other notin (x)", True),
            ("other in (x)", False),
            ("empty=", True),
        ],
    )
    def test_it_selects_as_kubectl_does(self, selector, chosen):
        assert selects(selector, LABELS) is chosen

    @pytest.mark.parametrize("selector", ["a b", "a in", "a in (b", "=b", "a,,b", "(a)", "a=b c"])
    def test_one_that_cannot_be_read_is_refused(self, selector):
        with pytest.raises(ValueError, match="is no label selector"):
            Selection(selector=selector)


class TestReading:
    def test_what_is_given_replaces_the_default(self):
        given = {"namespace": "vault", "skip": "a,b"}

        assert Selection.parse(given) == Selection(namespace="vault", skip=("a", "b"))
        assert Selection.parse({}) == Selection()

    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ({"namespace": "Vault"}, "no namespace's name"),
            ({"skip": "a,-b"}, "no namespace's name"),
            ({"type": "a b"}, "no type of a Secret"),
            ({"type": "a,metadata.name=b"}, "no type of a Secret"),
            *(({"type": type_}, "gives somebody's rights") for type_ in Secret.CREDENTIALS),
        ],
    )
    def test_what_is_not_valid_is_refused(self, given, why):
        with pytest.raises(ValueError, match=why):
            Selection.parse(given)


class TestRights:
    def test_namespaces_are_only_watched_and_secrets_are_written(self):
        found = by_namespace(of_controllers(Registry((configured({}),)).controllers))

        verbs = {right.verb for right in found[""] if right.resource == "secrets"}
        assert verbs == {"get", "list", "watch", "create", "patch", "delete"}
        assert {r.verb for r in found[""] if r.resource == "namespaces"} == {"list", "watch"}
        assert found.keys() == {""}
