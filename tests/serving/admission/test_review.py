"""Admission: what an API server is answered before it stores a resource."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Annotated, Any, cast, get_args, get_origin

import pytest
from annotated_types import MaxLen
from pydantic import BaseModel, Field

from hedgerow.contract import Controller
from hedgerow.controllers import memcached
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.serving.admission import review as admission
from hedgerow.serving.admission.review import ReviewError
from hedgerow.validation import FieldError
from hedgerow_schemas.base import Model, Resource
from serving.reviews import CRONJOB, review
from support.operator.registered import CONTROLLERS

Object = dict[str, Any]
BLUEGREEN, MEMCACHED = (
    cast("Controller[Resource]", module.CONTROLLER) for module in (bluegreen, memcached)
)
BAD_CLAIM = {"hedgerow.dev/claim": "nonsense"}


def obj(controller: Controller[Resource] = CRONJOB, **more: Any) -> Object:
    """A good object; `annotations` and other metadata are told apart from its spec."""
    usual = {
        "cronjob": {"schedule": "* * * * *", "jobTemplate": {"spec": {}}},
        "bluegreen": {"routeTo": "Blue", "blueSpec": {"containers": [{"name": "c"}]}},
        "memcached": {"size": 1},
    }
    meta = {"name": "x", "namespace": "ns", **more.pop("metadata", {})}
    api = controller.resource.api
    return {
        "apiVersion": api.group_version,
        "kind": api.kind,
        "metadata": meta,
        "spec": usual[controller.name] | more,
    }


def judged(body: Object, controller: Controller[Resource] = CRONJOB) -> Object:
    answer = admission.validate(admission.read_review(body, controller), controller)
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answer["response"]["uid"] == "705ab4f5"
    return answer["response"]


def fields(response: Object) -> list[str]:
    return [cause["field"] for cause in response["status"]["details"]["causes"]]


class TestReviews:
    @pytest.mark.parametrize(
        "body",
        [
            None,
            [],
            "x",
            {},
            {"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"},
            {"apiVersion": "admission.k8s.io/v1", "kind": "Pod"},
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"},
            review(obj(), uid=""),
            review(obj(), uid=7),
            review(obj(), uid="x" * 65),
            review(obj(), resource=None),
            review(obj(), resource={"group": "apps", "version": "v1", "resource": "cronjobs"}),
            review(obj(), operation="PATCH"),
            review(None),
            review(None, obj()),
            review(obj(), operation=None),
            review(obj(), object=[1]),
            review(obj(), object={}),
            review(obj(), object={"metadata": []}),
            review(obj(), oldObject={"metadata": {"annotations": [1]}}),
            review(obj(BLUEGREEN), controller=BLUEGREEN),
        ],
    )
    def test_what_is_none_of_this_version_about_this_kind_is_refused_in_one_line(self, body):
        with pytest.raises(ReviewError) as error:
            admission.read_review(body, CRONJOB)

        assert "\n" not in str(error.value)

    def test_the_refusal_names_the_field(self):
        with pytest.raises(ReviewError, match=r"request\.kind\.group: must be set"):
            admission.read_review(review(obj(), kind={"version": "v1", "kind": "CronJob"}), CRONJOB)

    def test_what_later_versions_add_is_passed_over(self):
        assert judged(review(obj(), invented={"a": 1}))["allowed"] is True


class TestValidating:
    @pytest.mark.parametrize("controller", [CRONJOB, BLUEGREEN, MEMCACHED])
    def test_a_good_object_is_admitted_without_a_word(self, controller):
        body = review(obj(controller), controller=controller)

        assert judged(body, controller) == {"uid": "705ab4f5", "allowed": True}

    def test_every_error_is_in_one_answer_as_the_server_puts_it(self):
        name = "x" * 53
        bad = obj(
            metadata={"name": name, "annotations": BAD_CLAIM | {"hedgerow.dev/yield": ""}},
            schedule="61 * * * *",
            timeZone="Mars/Olympus",
        )

        status = judged(review(bad))["status"]

        assert (status["status"], status["code"], status["reason"]) == ("Failure", 422, "Invalid")
        assert status["details"]["kind"] == "CronJob"
        assert status["details"]["group"] == "batch.tutorial.kubebuilder.io"
        assert status["details"]["name"] == name
        assert [cause["field"] for cause in status["details"]["causes"]] == [
            "metadata.name",
            "spec.schedule",
            "spec.timeZone",
            "metadata.annotations[hedgerow.dev/yield]",
            "metadata.annotations[hedgerow.dev/claim]",
        ]
        assert status["message"].startswith(
            f'CronJob.batch.tutorial.kubebuilder.io "{name}" is invalid: '
            f'[metadata.name: Invalid value: "{name}": must be no more than 52 characters, '
            'spec.schedule: Invalid value: "61 * * * *": '
        )
        assert (
            'metadata.annotations[hedgerow.dev/claim]: Invalid value: "nonsense": '
            "'nonsense' is not KIND/NAME: PATH, as in Deployment/*: spec.replicas]"
        ) in status["message"]

    def test_one_error_stands_without_brackets(self):
        message = judged(review(obj(schedule="@never")))["status"]["message"]

        assert "is invalid: spec.schedule: Invalid value: " in message

    @pytest.mark.parametrize("controller", [CRONJOB, BLUEGREEN, MEMCACHED])
    def test_the_grammar_of_annotations_holds_for_every_kind(self, controller):
        bad = obj(controller, metadata={"annotations": BAD_CLAIM})
        response = judged(review(bad, controller=controller), controller)

        assert fields(response) == ["metadata.annotations[hedgerow.dev/claim]"]

    def test_what_the_model_cannot_read_is_an_error_of_each_field(self):
        bad = obj(schedule=5, concurrencyPolicy="Sometimes", suspend="perhaps")
        del bad["spec"]["jobTemplate"]
        bad["metadata"]["annotations"] = BAD_CLAIM
        response = judged(review(bad))

        assert fields(response) == [
            "spec.schedule",
            "spec.concurrencyPolicy",
            "spec.suspend",
            "spec.jobTemplate",
            "metadata.annotations[hedgerow.dev/claim]",
        ]
        causes = response["status"]["details"]["causes"]
        assert causes[3]["reason"] == "FieldValueRequired"
        assert causes[3]["message"] == "Required value: must be set"

    def test_a_list_item_is_named_by_its_index(self):
        bad = obj(BLUEGREEN, ports=[{"port": 80}, {"port": "x"}])
        response = judged(review(bad, controller=BLUEGREEN), BLUEGREEN)

        assert fields(response) == ["spec.ports[1].port"]

    def test_a_status_is_not_judged_since_no_user_writes_it(self):
        assert judged(review(obj() | {"status": {"active": 7}}))["allowed"] is True

    @pytest.mark.parametrize(
        ("base", "allowed"), [("hello-", True), ("x" * 47, True), ("x" * 48, False)]
    )
    def test_a_name_that_the_server_is_to_make_up_is_judged_by_its_length(self, base, allowed):
        unnamed = obj(metadata={"generateName": base})
        del unnamed["metadata"]["name"]

        assert judged(review(unnamed))["allowed"] is allowed

    def test_an_endless_value_is_cut(self):
        annotations = {"hedgerow.dev/claim": "x" * 5000, "hedgerow.dev/yield": "y" * 4000}
        response = judged(review(obj(metadata={"annotations": annotations})))

        assert len(response["status"]["message"]) < 2000
        assert all(len(c["message"]) < 800 for c in response["status"]["details"]["causes"])


class TestRatcheting:
    BAD = obj(schedule="61 * * * *", metadata={"annotations": BAD_CLAIM})

    def test_an_old_error_keeps_nobody_from_changing_something_else(self):
        new = copy.deepcopy(self.BAD)
        new["metadata"]["labels"] = {"team": "a"}

        assert judged(review(new, self.BAD))["allowed"] is True

    def test_one_of_two_errors_may_be_mended_alone(self):
        new = copy.deepcopy(self.BAD)
        new["metadata"]["annotations"] = {}

        assert judged(review(new, self.BAD))["allowed"] is True

    def test_another_wrong_value_is_a_new_error_and_the_only_one_told(self):
        new = copy.deepcopy(self.BAD)
        new["spec"]["schedule"] = "62 * * * *"

        assert fields(judged(review(new, self.BAD))) == ["spec.schedule"]

    def test_an_error_that_a_change_elsewhere_brings_about_is_new(self):
        old = obj(schedule="CRON_TZ=UTC 0 * * * *")
        new = obj(schedule="CRON_TZ=UTC 0 * * * *", timeZone="UTC")

        assert fields(judged(review(new, old))) == ["spec.timeZone"]

    def test_two_values_that_only_look_alike_when_cut_are_two(self):
        old = obj(metadata={"annotations": {"hedgerow.dev/claim": "x" * 200}})
        new = obj(metadata={"annotations": {"hedgerow.dev/claim": "x" * 201}})

        assert judged(review(new, old))["allowed"] is False

    def test_an_object_that_cannot_be_read_may_stay_so(self):
        unread = obj(concurrencyPolicy="Sometimes")

        assert judged(review({**unread, "x": 1}, unread))["allowed"] is True

    def test_errors_without_number_are_compared_with_those_of_their_own_field(self, monkeypatch):
        """Each with each would take long where there are many."""
        compared: list[str] = []
        equal = FieldError.__eq__

        def counted(one: FieldError, other: object) -> bool:
            compared.append(one.field)
            return equal(one, other)

        monkeypatch.setattr(FieldError, "__eq__", counted)
        old, new = (obj(BLUEGREEN, ports=[{"port": value} for _ in range(32)]) for value in (0, -1))

        body = review(new, old, BLUEGREEN)
        assert len(fields(judged(body, BLUEGREEN))) == 32
        assert len(compared) == 32

    def test_a_creation_has_nothing_to_refer_to(self):
        assert judged(review(self.BAD))["allowed"] is False


class TestBounds:
    def test_an_object_without_a_spec_is_refused_for_that(self):
        bare = {key: value for key, value in obj().items() if key != "spec"}

        assert fields(judged(review(bare))) == ["spec"]

    def test_every_list_of_a_spec_has_a_bound_and_no_map_has_values_of_a_model(self):
        """A list of any length is an error for each of its items, before anybody can stop it."""
        loose = [
            f"{name}: {field}"
            for name, controller in CONTROLLERS.items()
            if controller.is_custom
            for field in unbounded(controller.resource.model_fields["spec"].annotation, "spec")
        ]

        assert loose == []

    def test_the_rule_for_lists_tells_them_apart(self):
        class Part(Model):
            bounded: Annotated[list[str], Field(max_length=3)]
            free: tuple[str, ...] = ()
            labels: dict[str, str] | None = None
            anything: dict[str, Any]

        class Whole(Model):
            part: Part

        assert list(unbounded(Whole, "spec")) == ["spec.part.free", "spec.part.labels"]

    def test_no_more_of_a_long_value_is_written_than_is_shown(self):
        class Endless(list[int]):
            def __iter__(self) -> Iterator[int]:
                return itertools.count()

        assert len(str(FieldError("spec.x", Endless([1]), "is no map"))) < 200


def unbounded(model: Any, path: str) -> Iterator[str]:
    """Yield the fields that may hold any number of items of a type that is checked."""
    for name, field in model.model_fields.items():
        place, kinds = f"{path}.{name}", get_args(field.annotation) or (field.annotation,)
        if get_origin(field.annotation) in (list, tuple, dict):
            kinds = (field.annotation,)
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel) and not get_origin(kind):
                yield from unbounded(kind, place)
            elif get_origin(kind) in (list, tuple, set):
                bounds = [one for one in field.metadata if isinstance(one, MaxLen)]
                yield from () if bounds else (place,)
            elif get_origin(kind) is dict and get_args(kind)[1] is not Any:
                yield place


class TestAlwaysAllowed:
    BAD = obj(schedule="bad")

    @pytest.mark.parametrize(
        "body",
        [
            review({**BAD, "metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            review(BAD, operation="DELETE"),
            review(None, operation="DELETE", oldObject=BAD),
            review(BAD, operation="CONNECT"),
            review(BAD, subResource="status"),
        ],
        ids=["going", "delete", "delete without object", "connect", "status"],
    )
    def test_what_is_going_or_no_write_of_the_resource_itself_is_admitted(self, body):
        assert judged(body)["allowed"] is True


class TestWarnings:
    def test_an_unknown_annotation_of_ours_is_told(self):
        response = judged(review(obj(metadata={"annotations": {"hedgerow.dev/yeild": "x"}})))

        assert response["allowed"] is True
        assert response["warnings"] == [
            "hedgerow.dev/yeild is no annotation of hedgerow's; did you mean hedgerow.dev/yield?"
        ]

    def test_a_term_about_a_kind_that_is_never_written_is_idle(self):
        annotations = {"hedgerow.dev/yield": "Pod/*: spec.x; Job/*: spec.x; */*: spec.y"}
        response = judged(review(obj(metadata={"annotations": annotations})))

        assert response["allowed"] is True
        assert response["warnings"] == [
            "metadata.annotations[hedgerow.dev/yield]: Pod is not written here, only CronJob, Job"
        ]

    def test_a_warning_is_short_enough_for_a_header(self):
        annotations = {"hedgerow.dev/yield": f"{'P' * 900}/*: spec.x"}
        (warning,) = judged(review(obj(metadata={"annotations": annotations})))["warnings"]

        assert len(warning) == 256
