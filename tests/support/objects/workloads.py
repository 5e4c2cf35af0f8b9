"""Workloads: what runs pods, as manifests."""

from __future__ import annotations

from support.objects.cases import LABEL, LABELS, MAIN, Case, Field, container, pod, workload

RICH = container(
    command=["app", "--serve"],
    env=[
        {"name": "MODE", "value": "fast"},
        {"name": "EMPTY", "value": ""},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ],
    ports=[
        {"name": "http", "containerPort": 80, "protocol": "TCP"},
        {"name": "dns", "containerPort": 53, "protocol": "UDP"},
    ],
    resources={"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "0.5"}},
    volumeMounts=[{"name": "work", "mountPath": "/work"}],
    readinessProbe={"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
    securityContext={"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
)

DEPLOYMENT = Case(
    "deployment",
    workload("Deployment", pod(container())),
    (
        LABEL,
        Field((*MAIN, "image"), "registry.example/app:2"),
        Field(("spec", "template", "metadata", "labels", "app"), "a"),
    ),
)
RICH_DEPLOYMENT = Case(
    "rich deployment",
    workload(
        "Deployment",
        pod(
            RICH,
            container("side", ports=[{"containerPort": 81, "protocol": "TCP"}]),
            volumes=[
                {"name": "work", "emptyDir": {"sizeLimit": "1024Mi"}},
                {"name": "more", "emptyDir": {}},
            ],
            nodeSelector={"disk": "fast"},
            tolerations=[{"key": "dedicated", "operator": "Exists"}],
            hostNetwork=False,
        ),
        replicas=2,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        paused=False,
    ),
    (
        Field(("spec", "replicas"), 5),
        Field(("spec", "strategy", "rollingUpdate", "maxSurge"), "30%"),
        Field((*MAIN, "env", {"name": "MODE"}, "value"), "slow"),
        Field(
            (*MAIN, "env", {"name": "POD"}, "valueFrom", "fieldRef"), {"fieldPath": "spec.nodeName"}
        ),
        Field((*MAIN, "command"), ["other"]),
        Field((*MAIN, "ports", {"containerPort": 80, "protocol": "TCP"}, "name"), "web"),
        Field((*MAIN, "resources", "limits", "cpu"), "2"),
        Field((*MAIN, "readinessProbe", "periodSeconds"), 7),
        Field(("spec", "template", "spec", "nodeSelector"), {"disk": "slow"}),
        Field(
            ("spec", "template", "spec", "tolerations"), [{"key": "other", "operator": "Exists"}]
        ),
    ),
)
AUTOSCALER = Case(
    "horizontalpodautoscaler",
    {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"labels": LABELS},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            "minReplicas": 2,
            "maxReplicas": 5,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 60},
                    },
                }
            ],
        },
    },
    (Field(("spec", "maxReplicas"), 6), Field(("spec", "minReplicas"), 1)),
)
JOB_TEMPLATE = {
    "spec": {
        "backoffLimit": 2,
        "template": {"spec": {"containers": [container()], "restartPolicy": "OnFailure"}},
    }
}
CRON_JOB = Case(
    "cronjob",
    {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"labels": LABELS},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": JOB_TEMPLATE, "suspend": False},
    },
    (
        Field(("spec", "schedule"), "0 * * * *"),
        Field(("spec", "suspend"), True),
        Field(("spec", "jobTemplate", "spec", "backoffLimit"), 3),
    ),
)
JOB = Case(
    "job",
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"labels": LABELS},
        "spec": {**JOB_TEMPLATE["spec"], "parallelism": 2},
    },
    (LABEL, Field(("spec", "parallelism"), 3)),
)
STATEFUL_SET = Case(
    "statefulset",
    workload(
        "StatefulSet",
        pod(container()),
        serviceName="a",
        volumeClaimTemplates=[
            {
                "metadata": {"name": "store"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1024Mi"}},
                },
            }
        ],
    ),
    (Field((*MAIN, "image"), "registry.example/app:2"),),
)
