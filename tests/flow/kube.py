# SPDX-License-Identifier: Apache-2.0
"""A reader for the YAML that `hvdrun kubernetes` prints, and all fields that it may print.

FIELDS are facts about the schemas: which fields an object has, and of which type. Sources, and what follows from them:

Kubernetes 1.30 and 1.34 list each field of a Job in a file. The other objects were read in one version, the Secret in an older one.
Fields of a stable version of an API never go, so later versions have them, too.
  kubernetes/kubernetes staging/src/k8s.io/api/testdata/v1.30.0/batch.v1.Job.yaml, commit 2dd1588c490775be7cd90d0afc59c6dcef07032a
  kubernetes/kubernetes staging/src/k8s.io/api/testdata/v1.34.0/batch.v1.Job.yaml, commit a6420fa0f8daa32666688164f2b912bfac93499f
  kubernetes/kubernetes staging/src/k8s.io/api/testdata/v1.30.0/core.v1.Service.yaml, commit 2dd1588c490775be7cd90d0afc59c6dcef07032a
  kubernetes/kubernetes staging/src/k8s.io/api/testdata/v1.34.0/networking.k8s.io.v1.NetworkPolicy.yaml,
    commit 5e377f9484190488bbbcb3ac9d24cc8be55e792f
  Arnavion/k8s-openapi src/v1_30/api/networking/v1/network_policy_spec.rs, commit be2ebe15080d2c59dbe3b21ff870ecccf4274104
  Arnavion/k8s-openapi src/v1_30/api/policy/v1/pod_disruption_budget_spec.rs, commit 139dd230994a705723af9299b9e5a3946de768de
  kubernetes/kubernetes staging/src/k8s.io/api/testdata/HEAD/core.v1.Secret.yaml, commit 05c351a9037bd79bf88c56171a951c3097b658da
kubernetes-sigs/jobset config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml, commit 01078527ec4383c3d7289b5af3e0a788324e14ec (v1alpha2)
kubeflow/mpi-operator manifests/base/kubeflow.org_mpijobs.yaml, commit 013fa15b22a60180c99f5111a904b60099828f89 (v2beta1);
  launcherCreationPolicy, which is newer: pkg/apis/kubeflow/v2beta1/types.go of a later commit, whose number is not known here
kubeflow/trainer manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml, commit 0f13bb7a01973a1717651000c746d634bd4161e9 (v1alpha1)

Values in a set are an enumeration of the schema, or of the documented values of the field.
"""

import re

# ------------------------------------------------------------------ fields

STRINGS = [str]
MAP = {"*": str}  # any keys
QUANTITIES = {"*": (int, str)}
METADATA = {"name!": str, "namespace": str, "labels": MAP}
SELECTOR = {"matchLabels": MAP, "matchExpressions": [{"key!": str, "operator!": {"In", "NotIn", "Exists", "DoesNotExist"},
                                                      "values": STRINGS}]}
RESOURCES = {"limits": QUANTITIES, "requests": QUANTITIES}
SECCOMP = {"type!": {"RuntimeDefault", "Unconfined", "Localhost"}}
CONTAINER = {
    "name!": str, "image": str, "command": STRINGS, "args": STRINGS, "workingDir": str,
    "env": [{"name!": str, "value": str}],
    "resources": RESOURCES,
    "securityContext": {"readOnlyRootFilesystem": bool, "allowPrivilegeEscalation": bool, "capabilities": {"drop": STRINGS}},
    "volumeMounts": [{"name!": str, "mountPath!": str}]}
POD = {
    "subdomain": str, "restartPolicy": {"Always", "OnFailure", "Never"}, "terminationGracePeriodSeconds": int,
    "automountServiceAccountToken": bool,
    "securityContext": {"seccompProfile": SECCOMP, "runAsNonRoot": bool, "runAsUser": int, "fsGroup": int},
    "containers!": [CONTAINER],
    "volumes": [{"name!": str, "secret": {"secretName": str, "defaultMode": int}, "emptyDir": {"medium": {"", "Memory"}}}]}
JOB = {
    "completionMode": {"Indexed", "NonIndexed"}, "completions": int, "parallelism": int, "backoffLimitPerIndex": int,
    "successPolicy": {"rules!": [{"succeededIndexes": str, "succeededCount": int}]},
    "podFailurePolicy": {"rules!": [{
        "action!": {"FailJob", "FailIndex", "Ignore", "Count"},
        "onExitCodes": {"containerName": str, "operator!": {"In", "NotIn"}, "values!": [int]},
        "onPodConditions": [{"type!": str, "status!": str}]}]},
    "template!": {"metadata": {"labels": MAP}, "spec": POD}}

FIELDS = {
    ("v1", "Secret"): {"stringData": MAP},
    ("v1", "Service"): {"spec": {"clusterIP": str, "publishNotReadyAddresses": bool, "selector": MAP}},
    ("networking.k8s.io/v1", "NetworkPolicy"): {"spec": {
        "podSelector!": SELECTOR, "policyTypes": [{"Ingress", "Egress"}], "ingress": [{"from": [{"podSelector": SELECTOR}]}]}},
    ("policy/v1", "PodDisruptionBudget"): {"spec": {"minAvailable": (int, str), "selector": SELECTOR}},
    ("batch/v1", "Job"): {"spec!": JOB},
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): {"spec": {
        "failurePolicy": {"maxRestarts": int, "rules": [{
            "name!": str, "action!": {"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"},
            "onJobFailureReasons": [{"BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded",
                                     "PodFailurePolicy"}]}]},
        "replicatedJobs": [{"name!": str, "replicas": int, "template!": {"spec": JOB}}]}},
    ("kubeflow.org/v2beta1", "MPIJob"): {"spec": {
        "slotsPerWorker": int, "runPolicy": {"cleanPodPolicy": {"None", "Running", "All"}, "backoffLimit": int},
        "launcherCreationPolicy": {"AtStartup", "WaitForWorkersReady"},
        "mpiReplicaSpecs!": {"*": {"replicas": int, "restartPolicy": str, "template": {"spec": POD}}}}},
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): {"spec": {
        "runtimeRef!": {"name!": str, "apiGroup": str, "kind": str},
        "trainer": {"image": str, "command": STRINGS, "args": STRINGS, "numNodes": int, "numProcPerNode": int,
                    "resourcesPerNode": RESOURCES}}},
}

# The version of Kubernetes in which a field that depends on a feature gate works without further ado (pkg/features/kube_features.go).
SINCE = {"successPolicy": (1, 31), "podFailurePolicy": (1, 26), "backoffLimitPerIndex": (1, 29)}


def check(value, kind, path):
    """Raises ValueError for a field that the table does not know, a missing one, and a wrong type."""
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            raise ValueError(f"{path}: {value!r} is not an object")
        known = {key.rstrip("!"): inner for key, inner in kind.items()}
        for key in kind:
            if key.endswith("!") and key[:-1] not in value:
                raise ValueError(f"{path}: {key[:-1]} is missing")
        for key, inner in value.items():
            if key not in known and "*" not in known:
                raise ValueError(f"{path}.{key}: no such field")
            check(inner, known.get(key, known.get("*")), f"{path}.{key}")
    elif isinstance(kind, list):
        if not isinstance(value, list):
            raise ValueError(f"{path}: {value!r} is not a list")
        for at, inner in enumerate(value):
            check(inner, kind[0], f"{path}[{at}]")
    elif isinstance(kind, set):
        if value not in kind:
            raise ValueError(f"{path}: {value!r} is none of {sorted(kind)}")
    elif not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{path}: {value!r} has another type")


def check_object(thing):
    kind = (thing.get("apiVersion"), thing.get("kind"))
    if kind not in FIELDS:
        raise ValueError(f"{kind}: no such object")
    check(thing, {"apiVersion!": str, "kind!": str, "metadata!": METADATA, **FIELDS[kind]}, kind[1])


# ------------------------------------------------------------------ the reader

class Reader:
    """Block maps and lists, flow maps and lists on one line, literal blocks, plain and double-quoted scalars, comments.

    It refuses all other YAML, so that nothing can mean one thing here and another one in a cluster."""

    PLAIN = re.compile(r"-{0,2}[A-Za-z0-9/][A-Za-z0-9._/=-]*")
    KEY = re.compile(r'([A-Za-z][A-Za-z0-9._/-]*):(?: +(.*))?$')
    ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}

    def __init__(self, text):
        self.lines = text.split("\n")
        self.at = 0

    def fail(self, why):
        raise ValueError(f"line {self.at + 1}: {why}: {self.lines[self.at]!r}")

    def scalar(self, text):
        if text.startswith('"'):
            def unescape(match):
                word = match[1]
                if word[0] in "xuU":
                    return chr(int(word[1:], 16))
                return self.ESCAPES[word]
            return re.sub(r"\\(x[0-9A-F]{2}|u[0-9A-F]{4}|U[0-9A-F]{8}|.)", unescape, text[1:-1])
        if not self.PLAIN.fullmatch(text):
            self.fail(f"not a plain scalar: {text}")
        if text in ("true", "false"):
            return text == "true"
        if text.lower() in ("yes", "no", "on", "off", "y", "n", "null"):
            self.fail("a word that is no string")
        if re.fullmatch(r"0|[1-9][0-9]*", text):
            return int(text)
        if text[0].isdigit() and not text.endswith("s"):
            self.fail("a number of another kind")
        return text

    def flow(self, text):
        """A value on one line, and what follows it."""
        text = text.lstrip()
        if text[:1] in ("{", "["):
            closes = "}" if text[0] == "{" else "]"
            things = {} if text[0] == "{" else []
            rest = text[1:].lstrip()
            while not rest.startswith(closes):
                if closes == "}":
                    key, colon, rest = rest.partition(": ")
                    if not colon:
                        self.fail("no key")
                    value, rest = self.flow(rest)
                    if key in things:
                        self.fail(f"{key} twice")
                    things[key] = value
                else:
                    value, rest = self.flow(rest)
                    things.append(value)
                rest = rest.lstrip()
                if rest.startswith(","):
                    rest = rest[1:].lstrip()
                elif not rest.startswith(closes):
                    self.fail("no end")
            return things, rest[1:]
        match = re.match(r'"(?:[^"\\]|\\.)*"|[^\s,\]}]+', text)
        if not match:
            self.fail("no value")
        return self.scalar(match[0]), text[match.end():]

    def value(self, text):
        """The value that begins on the line of its key."""
        value, rest = self.flow(text)
        if rest.strip() and not re.match(r" +#", rest):
            self.fail("more than a value")
        return value

    @staticmethod
    def depth(line):
        return len(line) - len(line.lstrip(" "))

    def skip(self):
        while self.at < len(self.lines) and (not self.lines[self.at].strip() or self.lines[self.at].lstrip().startswith("#")):
            self.at += 1

    def literal(self, depth):
        """A block after '|', deeper than `depth`."""
        lines, own = [], None
        while self.at < len(self.lines) and self.depth(self.lines[self.at]) > depth:
            own = own or self.depth(self.lines[self.at])
            lines.append(self.lines[self.at][own:])
            self.at += 1
        return "\n".join(lines) + "\n"

    def inner(self, text, depth):
        """What a key or a dash is for. `at` is after its line."""
        if text and not text.startswith("#"):
            if text == "|":
                return self.literal(depth)
            self.at -= 1
            value = self.value(text)
            self.at += 1
            return value
        self.skip()
        if self.at == len(self.lines) or self.depth(self.lines[self.at]) <= depth:
            self.at -= 1
            self.fail("no value")
        return self.block(self.depth(self.lines[self.at]))

    def block(self, depth):
        things = None
        while True:
            self.skip()
            if self.at == len(self.lines) or self.depth(self.lines[self.at]) < depth:
                return things
            line = self.lines[self.at]
            if self.depth(line) > depth:
                self.fail("too deep")
            text = line[depth:]
            if text.startswith("- "):
                things = [] if things is None else things
                if isinstance(things, dict):
                    self.fail("an item among keys")
                if self.KEY.match(text[2:]):  # a map in a list
                    self.lines[self.at] = " " * (depth + 2) + text[2:]
                    things.append(self.block(depth + 2))
                else:
                    self.at += 1
                    things.append(self.inner(text[2:].strip(), depth))
                continue
            match = self.KEY.match(text)
            if not match:
                self.fail("neither a key nor an item")
            things = {} if things is None else things
            if isinstance(things, list):
                self.fail("a key among items")
            if match[1] in things:
                self.fail(f"{match[1]} twice")
            self.at += 1
            things[match[1]] = self.inner((match[2] or "").strip(), depth)


def read(text):
    """The objects of a file."""
    return [Reader(part).block(0) for part in re.split(r"^---\n", text, flags=re.M)]


def words(container):
    """The command line of a container, as Kubernetes makes it: $(NAME) has no value here, and $$ is $."""
    line = container.get("command", []) + container.get("args", [])
    return [re.sub(r"\$\$|\$\(\w+\)", lambda match: "$" if match[0] == "$$" else "?", word) for word in line]

