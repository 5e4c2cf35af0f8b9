"""Ours: hedgerow's own custom resources, as the model knows them."""

from __future__ import annotations

from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.cronjob import LONGEST_NAME, CronJob
from hedgerow_schemas.guestbook import Guestbook
from hedgerow_schemas.memcached import Memcached
from hedgerow_testing.memory.kind import ServedKind, Wrong
from hedgerow_testing.memory.kinds import custom_resource
from hedgerow_testing.memory.schema import Object


def _unroutable(bluegreen: Object) -> Wrong:
    spec = bluegreen["spec"]
    field = f"{spec['routeTo'].lower()}Spec"
    return {} if field in spec else {f"spec.{field}": "Required value"}


def _untimely(cronjob: Object) -> Wrong:
    spec, wrong = cronjob["spec"], {}
    if "timeZone" in spec and "TZ=" in spec["schedule"]:
        wrong["spec.timeZone"] = "the zone is given twice"
    if len(cronjob["metadata"]["name"]) > LONGEST_NAME:
        wrong["metadata.name"] = "too long"
    return wrong


def bluegreen() -> ServedKind:
    return custom_resource(BlueGreen, refuses=_unroutable)


def memcached() -> ServedKind:
    return custom_resource(Memcached)


def guestbook() -> ServedKind:
    return custom_resource(Guestbook)


def cronjob() -> ServedKind:
    return custom_resource(CronJob, refuses=_untimely)
