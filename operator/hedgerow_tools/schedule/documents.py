"""Documents: the CronJobs of manifests, and what is wrong with them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pydantic import ValidationError

from hedgerow.encoding import encode
from hedgerow.fields.applyconfiguration import without_nulls
from hedgerow.manifest import QUOTED
from hedgerow.schedule import schedule_problems
from hedgerow.validation import field_errors
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.builtin import Deployment, StatefulSet
from hedgerow_schemas.cronjob import LONGEST_NAME, CronJob, CronJobSpec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from hedgerow.validation import FieldError
    from hedgerow_schemas.base import Object

KUBERNETES: Final = ApiResource("batch/v1", "CronJob", "cronjobs")
"""The CronJob of Kubernetes itself."""
_WORDS = {CronJob.api.plural, CronJob.api.kind.lower(), "cj"}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_FIELDS = frozenset(field.alias or "" for field in CronJobSpec.model_fields.values())


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a manifest: `resource` if it is a CronJob without `problems`.

    `title` is its kind and name. `foreign`: it is a CronJob of Kubernetes itself. A document of
    another kind or version has neither resource nor problems, and `skipped` says why.
    """

    title: str
    resource: CronJob | None = None
    problems: tuple[str, ...] = ()
    foreign: bool = False
    skipped: str = ""


def cronjobs(word: str) -> tuple[ApiResource, ...]:
    """Return the kinds of CronJob that a word may mean: our own first, then that of Kubernetes."""
    name, _, rest = word.lower().partition(".")
    return tuple(
        api
        for api in (CronJob.api, KUBERNETES)
        if name in _WORDS and rest in {"", api.group, f"{api.version}.{api.group}"}
    )


def of_object(obj: Object) -> Document:
    """Return one object as a document; its nulls are left out, as the API server does."""
    obj = without_nulls(obj)
    metadata = obj.get("metadata")
    name = cast("Object", metadata).get("name") if isinstance(metadata, dict) else None
    title = f"{obj.get('kind')}/{name or '?'}"
    versions = {CronJob.api.group_version, KUBERNETES.group_version}
    version = str(obj.get("apiVersion"))
    if obj.get("kind") != CronJob.api.kind:
        return Document(f"{title} of {version}", skipped=_no_cronjob(obj, title))
    if version not in versions:
        ours = f"its apiVersion has to be {CronJob.api.group_version}"
        why = f"{ours}, or {KUBERNETES.group_version} for one of Kubernetes itself"
        return Document(f"{title} of {version}", skipped=why)
    try:
        resource = _validated(obj)
    except ValidationError as error:
        complaints = (f".{found.field}: {_complaint(found)}" for found in field_errors(error))
        return Document(title, problems=tuple(complaints))
    problems = tuple(_problems(obj, resource))
    return Document(
        title, None if problems else resource, problems, version == KUBERNETES.group_version
    )


def _no_cronjob(obj: Object, title: str) -> str:
    if obj.get("kind") in (Deployment.api.kind, StatefulSet.api.kind):
        return f"it is no CronJob; `schedule explain {title.lower()}` shows windows of a live one"
    return "it is no CronJob"


def _validated(obj: Object) -> CronJob:
    """Return a CronJob, read as strictly as by the API server; an invalid status is ignored."""
    body = encode(obj)
    try:
        return CronJob.model_validate_json(body, strict=True)
    except ValidationError as error:
        if any(item["loc"][:1] != ("status",) for item in error.errors()):
            raise
        return CronJob.model_validate_json(encode({**obj, "status": {}}), strict=True)


def _problems(obj: Object, cj: CronJob) -> Iterator[str]:
    """Yield what the CRD's rules and the operator would refuse."""
    for name in sorted(map(str, set(obj["spec"]) - _FIELDS)):
        yield f".spec.{name}: there is no such field"
    if not _NAME.fullmatch(cj.metadata.name) or len(cj.metadata.name) > LONGEST_NAME:
        yield f".metadata.name: it must be a DNS subdomain of at most {LONGEST_NAME} characters"
    for path, time in _times(cj):
        if time and time.utcoffset() is None:
            yield f"{path}: the time has no zone"
            return
    for fault in schedule_problems(cj.spec.schedule, cj.spec.time_zone):
        yield f".spec.{fault.field}: {fault.error}"


def _complaint(found: FieldError) -> str:
    """Return what is wrong with a value; for a schedule that YAML read as a number, the remedy."""
    number = found.field == "spec.schedule" and not isinstance(found.value, str)
    return f"{found.detail}: quote it, {QUOTED}" if number else found.detail


def _times(cj: CronJob) -> Iterator[tuple[str, datetime | None]]:
    yield ".metadata.creationTimestamp", cj.metadata.creation_timestamp
    yield ".status.lastScheduleTime", cj.status.last_schedule_time
    yield ".status.lastSuccessfulTime", cj.status.last_successful_time
