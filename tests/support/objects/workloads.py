"""Workloads: what runs pods, as manifests."""

from __future__ import annotations

from dataclasses import replace

from support.objects.cases import LABEL, MAIN, Field, case, container, pod, workload

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

IMAGE = Field((*MAIN, "image"), "registry.example/app:2")
POD_SPEC = ("spec", "template", "spec")
DEPLOYMENT = workload(
    *("Deployment", pod(container()), LABEL, IMAGE),
    Field(("spec", "template", "metadata", "labels", "app"), "a"),
)
RICH_DEPLOYMENT = replace(
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
        Field((*POD_SPEC, "nodeSelector"), {"disk": "slow"}),
        Field((*POD_SPEC, "tolerations"), [{"key": "other", "operator": "Exists"}]),
        replicas=2,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        paused=False,
    ),
    name="rich deployment",
)
CPU = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
AUTOSCALER = case(
    *("autoscaling/v2", "HorizontalPodAutoscaler"),
    Field(("spec", "maxReplicas"), 6),
    Field(("spec", "minReplicas"), 1),
    spec={
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
        "minReplicas": 2,
        "maxReplicas": 5,
        "metrics": [{"type": "Resource", "resource": CPU}],
    },
)
JOB = case(
    *("batch/v1", "Job", LABEL, Field(("spec", "parallelism"), 3)),
    spec={
        "backoffLimit": 2,
        "parallelism": 2,
        "template": {"spec": {"containers": [container()], "restartPolicy": "OnFailure"}},
    },
)
