"""What compose is given."""

from __future__ import annotations

from datetime import UTC, datetime

from hedgerow.contract import Answers, Desired, Observed
from hedgerow_schemas.builtin import Deployment, Pod, Service

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def named(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}}


class TestObserved:
    def test_a_child_is_found_by_kind_and_name(self):
        service, deployment = Service(named("a")), Deployment(named("a"))
        observed = Observed(NOW, children=(service, deployment))

        assert observed.child(Deployment, "a") is deployment
        assert observed.child(Service, "a") is service
        assert observed.child(Service, "b") is None

    def test_all_of_a_kind_come_owned_first_then_related(self):
        one, two, three = Pod(named("1")), Pod(named("2")), Service(named("3"))
        observed = Observed(NOW, children=(two, three), related=(one,))

        assert observed.all(Pod) == (two, one)

    def test_nothing_observed_is_empty(self):
        assert Observed(NOW).all(Pod) == ()

    def test_a_refused_write_is_known_by_kind_and_name(self):
        observed = Observed(NOW, answers=Answers(refused=frozenset({("Deployment", "web")})))

        assert observed.is_refused(Deployment, "web")
        assert not observed.is_refused(Deployment, "api")
        assert not observed.is_refused(Service, "web")

    def test_what_was_created_is_known_by_kind_and_name(self):
        made = {("Deployment", "web"): "1", ("Deployment", "api"): "2", ("Service", "web"): "3"}
        observed = Observed(NOW, answers=Answers(created=made))

        assert observed.created(Deployment) == {"web": "1", "api": "2"}
        assert observed.created(Pod) == {}

    def test_annotations_say_nothing_of_a_field_unless_told(self):
        assert not Observed(NOW).word(Deployment, "web", "spec", "replicas")

    def test_contributable_objects_are_found_like_children(self):
        one = Deployment({"metadata": {"name": "web"}})

        assert Observed(NOW, contributable=(one,)).child(Deployment, "web") is one


class TestDesired:
    def test_an_empty_answer_keeps_no_child_and_says_nothing(self):
        assert Desired() == Desired(children=(), status=None, events=(), requeue_after=None)
