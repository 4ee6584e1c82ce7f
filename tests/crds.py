"""Schemas of the custom resources in the manifests: KubeRay's `ray.io/v1` and the monitors of the Prometheus operator.

Names, types and required fields of the parts that the manifests use. Those of KubeRay come from its Go types; those of
the Prometheus operator were written from memory and not compared with their source. A misspelt or new field is an error
until it is added here.
Pod templates are checked against Kubernetes' own schemas, see `tests/unit/k8s/`.
"""


def record(required=(), **fields):
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


def several(item, **more):
    return {"type": "array", "items": item, **more}


TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}
FLAG = {"type": "boolean"}
LABELS = {"type": "object", "additionalProperties": {"type": "string"}}
TEMPLATE = {"type": "object", "required": ["metadata", "spec"]}
DURATION = {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"}

#: `ray start --NAME=VALUE`: strings, all of them.
START = {
    "type": "object",
    "propertyNames": {"enum": ["dashboard-host", "num-cpus", "num-gpus", "metrics-export-port", "object-store-memory"]},
    "additionalProperties": {"type": "string"},
}

RAY_CLUSTER = record(
    ("headGroupSpec",),
    rayVersion=TEXT,
    headGroupSpec=record(("rayStartParams", "template"), rayStartParams=START, template=TEMPLATE),
    workerGroupSpecs=several(
        record(
            ("groupName", "minReplicas", "maxReplicas", "rayStartParams", "template"),
            groupName={"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "maxLength": 30},
            replicas=COUNT,
            minReplicas=COUNT,
            maxReplicas=COUNT,
            rayStartParams=START,
            template=TEMPLATE,
        ),
        minItems=1,
    ),
)

SELECTOR = record(("matchLabels",), matchLabels=LABELS)
#: A request without a name of a port would scrape nothing.
ENDPOINT = record(
    ("port",),
    port=TEXT,
    path={"type": "string", "pattern": "^/"},
    interval=DURATION,
    scrapeTimeout=DURATION,
    relabelings=several(
        record(
            ("sourceLabels", "regex", "action"),
            sourceLabels=several({"type": "string", "pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"}),
            regex=TEXT,
            action={"enum": ["keep", "drop"]},
        )
    ),
    authorization=record(
        ("credentials",), type={"const": "Bearer"}, credentials=record(("name", "key"), name=TEXT, key=TEXT)
    ),
)

ALERT = record(
    ("alert", "expr", "for", "labels", "annotations"),
    alert={"type": "string", "pattern": "^[A-Z][A-Za-z]+$"},
    expr=TEXT,
    labels=record(("severity",), severity={"enum": ["critical", "warning"]}),
    annotations=record(("summary",), summary=TEXT),
    **{"for": DURATION},
)

SPECS = {
    ("ray.io/v1", "RayService"): record(
        ("serveConfigV2", "rayClusterConfig"),
        serveConfigV2=TEXT,
        excludeHeadPodFromServeSvc=FLAG,
        upgradeStrategy=record(("type",), type={"enum": ["NewCluster", "None"]}),
        rayClusterConfig=RAY_CLUSTER,
    ),
    ("ray.io/v1", "RayJob"): record(
        ("entrypoint", "rayClusterSpec"),
        entrypoint=TEXT,
        submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode"]},
        backoffLimit=COUNT,
        shutdownAfterJobFinishes=FLAG,
        ttlSecondsAfterFinished=COUNT,
        submitterPodTemplate=TEMPLATE,
        rayClusterSpec=RAY_CLUSTER,
    ),
    ("monitoring.coreos.com/v1", "ServiceMonitor"): record(
        ("selector", "endpoints"), selector=SELECTOR, endpoints=several(ENDPOINT, minItems=1)
    ),
    ("monitoring.coreos.com/v1", "PodMonitor"): record(
        ("selector", "podMetricsEndpoints"), selector=SELECTOR, podMetricsEndpoints=several(ENDPOINT, minItems=1)
    ),
    ("monitoring.coreos.com/v1", "PrometheusRule"): record(
        ("groups",), groups=several(record(("name", "rules"), name=TEXT, rules=several(ALERT, minItems=1)), minItems=1)
    ),
}

#: By (apiVersion, kind).
SCHEMAS = {
    (version, kind): record(
        ("apiVersion", "kind", "metadata", "spec"),
        apiVersion={"const": version},
        kind={"const": kind},
        metadata=record(("name",), name={"type": "string", "maxLength": 47}, labels=LABELS),
        spec=spec,
    )
    for (version, kind), spec in SPECS.items()
}
