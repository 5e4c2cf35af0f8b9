"""CronJob: a Job template, and the schedule by which Jobs are made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from hedgerow_schemas.base import ApiResource, CustomResource, Int32, Model, Object, Status, Time
from hedgerow_schemas.definition import UPSTREAM, Column, Definition, Rule, rules

if TYPE_CHECKING:
    from hedgerow_schemas.job import Job

ConcurrencyPolicy = Literal["Allow", "Forbid", "Replace"]

LONGEST_NAME = 52
"""63 characters for a Job, less the hyphen and ten digits that are appended."""

LONGEST_SCHEDULE = 1024

JobTemplate = Annotated[Object, WithJsonSchema({UPSTREAM: "io.k8s.api.batch.v1.JobTemplateSpec"})]
"""A Job template, kept as the user wrote it: nothing added, nothing dropped."""

Limit = Annotated[Int32, Field(ge=0, le=2**31 - 1)]


class CronJobSpec(Model):
    """What is wanted."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                rule="!has(self.timeZone) || !self.schedule.contains('TZ=')",
                message="the zone is given twice: in timeZone and as a prefix of schedule",
                path=".timeZone",
                editor={
                    "if": {"required": ["timeZone"]},
                    "then": {"properties": {"schedule": {"not": {"pattern": "TZ="}}}},
                },
            )
        )
    )
    schedule: str = Field(
        min_length=0,
        max_length=LONGEST_SCHEDULE,
        description=(
            "When Jobs start: five fields (minute, hour, day of month, month, day of week),"
            " a macro such as @daily, or @every and a duration; CRON_TZ=<zone> may stand before."
        ),
    )
    time_zone: str | None = Field(
        default=None,
        min_length=1,
        max_length=253,
        description="IANA name of the zone that schedule is read in; UTC when left out.",
    )
    starting_deadline_seconds: int | None = Field(
        default=None,
        ge=0,
        json_schema_extra={"format": "int64"},
        description="How late a Job may start; a start missed by more is skipped.",
    )
    concurrency_policy: ConcurrencyPolicy = Field(
        default="Allow",
        description=(
            "What becomes of a start while an earlier Job runs: Allow it, Forbid it, or Replace"
            " the earlier Job."
        ),
    )
    active_limit: Int32 = Field(
        default=100,
        ge=1,
        le=2**31 - 1,
        description=(
            "How many Jobs may run at once, whatever concurrencyPolicy says; a start beyond that"
            " waits until one has ended, the newest alone."
        ),
    )
    suspend: bool = Field(default=False, description="Whether new starts are held back.")
    job_template: JobTemplate = Field(description="What each Job is made of.")
    successful_jobs_history_limit: Limit = Field(
        default=3, description="How many Jobs that succeeded are kept."
    )
    failed_jobs_history_limit: Limit = Field(
        default=1, description="How many Jobs that failed are kept."
    )


class JobReference(Model):
    """One Job."""

    api_version: str | None = Field(default=None, description="Always batch/v1.")
    kind: str | None = Field(default=None, description="Always Job.")
    namespace: str | None = Field(default=None, description="Namespace of the Job.")
    name: str | None = Field(default=None, description="Name of the Job.")
    uid: str | None = Field(default=None, description="UID of the Job.")

    @classmethod
    def of(cls, job: Job) -> JobReference:
        """Refer to a Job; its resourceVersion is left out, or every change would be told twice."""
        return cls(
            api_version=job.api.group_version,
            kind=job.api.kind,
            namespace=job.namespace,
            name=job.name,
            uid=job.uid,
        )


class CronJobStatus(Status):
    """What was observed; written by the operator alone."""

    active: tuple[JobReference, ...] | None = Field(
        default=None,
        description=(
            "The Jobs that have not ended, the oldest 20 of them; left out when there are none."
        ),
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    active_count: Int32 | None = Field(
        default=None,
        ge=0,
        description="How many Jobs have not ended.",
    )
    last_schedule_time: Time | None = Field(
        default=None,
        description=(
            "The newest start that a Job was made for; it goes back only from a time ahead of now."
        ),
    )
    last_successful_time: Time | None = Field(
        default=None, description="When a Job last succeeded."
    )
    next_schedule_time: Time | None = Field(
        default=None,
        description="The next start, unless starts are suspended or the schedule cannot be read.",
    )
    missed: int | None = Field(
        default=None,
        ge=0,
        json_schema_extra={"format": "int64"},
        description=(
            "How many starts in a row passed without a Job: since lastScheduleTime or, if there"
            " are none, right before it."
        ),
    )


class CronJob(CustomResource):
    """Jobs made of a template by a schedule."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                rule=f"self.metadata.name.size() <= {LONGEST_NAME}",
                message=f"the name must be no more than {LONGEST_NAME} characters",
                path=".metadata.name",
                on_create_only=True,
                editor={
                    "properties": {
                        "metadata": {"properties": {"name": {"maxLength": LONGEST_NAME}}}
                    }
                },
            )
        )
    )
    api: ClassVar[ApiResource] = ApiResource(
        "batch.tutorial.kubebuilder.io/v1", "CronJob", "cronjobs"
    )
    definition: ClassVar[Definition] = Definition(
        columns=(
            Column("Schedule", ".spec.schedule", "When Jobs start."),
            Column("Suspend", ".spec.suspend", "Whether starts are held back.", type="boolean"),
            Column(
                "Active",
                ".status.activeCount",
                "How many Jobs have not ended.",
                type="integer",
            ),
            Column(
                "Last Schedule",
                ".status.lastScheduleTime",
                "Time since the newest start.",
                type="date",
            ),
            Column("Next", ".status.nextScheduleTime", "The next start."),
            Column(
                "Ready",
                '.status.conditions[?(@.type=="Ready")].status',
                "Whether starts are made as declared.",
            ),
            Column(
                "Contested",
                '.status.conditions[?(@.type=="Contested")].status',
                "Whether another field manager holds a field that hedgerow declares.",
                priority=1,
            ),
            Column(
                "Reason",
                '.status.conditions[?(@.type=="Ready")].reason',
                "Why it is ready or not.",
                priority=1,
            ),
            Column("Zone", ".spec.timeZone", "The zone of the schedule.", priority=1),
            Column("Age", ".metadata.creationTimestamp", "Time since creation.", type="date"),
        ),
    )

    spec: CronJobSpec = Field(description="What is wanted.")
    status: CronJobStatus = Field(
        default=CronJobStatus(), description="What was observed; written by the operator alone."
    )
