# SPDX-License-Identifier: Apache-2.0
"""`hvdrun kubernetes`: its manifests have only fields that the schemas have, and mean what the user has typed."""

import itertools
import os
import re
import shlex

import kube
from rig import SOURCE, Flow, main

EXAMPLES = os.path.join(SOURCE, "examples/kubernetes")
IMAGE = ("--image", "registry.example.org/train:1")
KINDS = ("job", "jobset", "mpijob", "trainjob")


class Kubernetes(Flow):

    def text(self, *words):
        result = self.expect(self.run_job("kubernetes", *words), 0)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def objects(self, *words):
        return kube.read(self.text(*words))

    def main_object(self, *words):
        return self.objects(*words)[-1]

    @staticmethod
    def pods(thing):
        """The templates of the pods of a Job, a JobSet or an MPIJob."""
        spec = thing["spec"]
        if thing["kind"] == "MPIJob":
            return [one["template"]["spec"] for one in spec["mpiReplicaSpecs"].values()]
        if thing["kind"] == "JobSet":
            spec = spec["replicatedJobs"][0]["template"]["spec"]
        return [spec["template"]["spec"]]


class Schemas(Kubernetes):

    def test_each_field(self):
        """Whatever the options are."""
        options = ([], ["--pods", "2:4"], ["--pods", "1:3", "--gpus", 8], ["--pods", 3, "--slots", 2], ["--namespace", "ml"],
                   ["--with-secret"], ["--grace", "5m"], ["--name", "no"])
        for kind, more in itertools.product(KINDS, options):
            refused = (kind == "trainjob" and (":" in str(more) or "--grace" in more)) or (kind in ("mpijob", "trainjob") and "--with-secret" in more)
            with self.subTest(kind=kind, more=more):
                if refused:
                    self.expect(self.run_job("kubernetes", "--kind", kind, *IMAGE, *more, "true"), 2)
                    continue
                for thing in self.objects("--kind", kind, *IMAGE, *more, "true"):
                    kube.check_object(thing)

    def test_the_table_would_notice(self):
        for old, new, why in (("completionMode", "completionmode", "no such field"), ("Ignore", "Ignored", "none of"),
                              ("[75, 143]", "[a]", "another type"), ("restartPolicy: Never", "restartPolicy: Often", "none of"),
                              ("    containers:", "    container:", "missing"), ("parallelism: 1", "parallelism: \"1\"", "another type"),
                              ("batch/v1", "batch/v2", "no such object")):
            with self.subTest(old=old):
                text = self.text(*IMAGE, "true")
                self.assertIn(old, text)
                with self.assertRaisesRegex(ValueError, why):
                    for thing in kube.read(text.replace(old, new)):
                        kube.check_object(thing)

    def test_the_reader_refuses_what_it_does_not_know(self):
        for text in ("a: &x b", "a: 'b'", "a: >\n  b", "a: b\na: c", "a: no", "a: 010", "a: [b", "a: b: c", "a: {b: c} d", "- a\nb: c",
                     "a:\n", "a: ?"):
            with self.subTest(text=text), self.assertRaises(ValueError):
                kube.read(text)

    def test_gates(self):
        """The page says which version of Kubernetes it takes."""
        with open(os.path.join(SOURCE, "docs/kubernetes.md"), encoding="utf-8") as file:
            page = file.read()
        text = self.text(*IMAGE, "true")
        for field, (major, minor) in kube.SINCE.items():
            self.assertIn(field, text)
            self.assertRegex(page, rf"\| `{field}` \| {major}\.{minor} \|")


class Meaning(Kubernetes):

    def test_the_examples(self):
        """Each has the command that made it in its second line."""
        for kind in KINDS:
            with self.subTest(kind=kind), open(os.path.join(EXAMPLES, f"{kind}.yaml"), encoding="utf-8") as file:
                first, line, rest = file.read().split("\n", 2)
                self.assertEqual(first, "# SPDX-License-Identifier: Apache-2.0")
                words = shlex.split(line.removeprefix("# "))
                self.assertEqual(words[:4], ["hvdrun", "kubernetes", "--kind", kind])
                self.assertEqual(rest, self.text(*words[2:]))

    def test_the_page(self):
        """Its commands are right, and its job is that of the example."""
        with open(os.path.join(SOURCE, "docs/kubernetes.md"), encoding="utf-8") as file:
            lines = re.findall(r"^hvdrun (kubernetes .*?)(?: >.*)?$", file.read(), re.M)
        with open(os.path.join(EXAMPLES, "job.yaml"), encoding="utf-8") as file:
            example = file.read().split("\n", 2)[2]
        self.assertEqual([self.expect(self.run_job(*shlex.split(line)), 0).stdout for line in lines], [example])

    def test_all_words_arrive(self):
        words = ["prog", "", " ", "a b", "'", '"', "\\", "\\n", "line\nline\r\ttab", "$HOME", "$$", "$(HOME)", "$$(HOME)", "$", "#", "a #b",
                 "key: value", "- x", "[1]", "{a}", "*", "&a", "!t", "|", ">", "%", "@", "`", "yes", "null", "~", "1", "1e3", "0x1f", "01",
                 "ünïcode", "日本", "\U0001f680", "\x01\x7f\x1b[31m", "\u0085", "\u2028", "\u2029", "\ufeff", "\ufffe", "--option=a,b",
                 "x" * 5000]
        for kind in KINDS:
            with self.subTest(kind=kind):
                thing = self.main_object("--kind", kind, *IMAGE, *words)
                container = thing["spec"]["trainer"] if kind == "trainjob" else self.pods(thing)[0]["containers"][0]
                self.assertEqual(kube.words(container)[-len(words):], words)

    def test_a_long_line(self):
        words = ["$" * 100000] * 12
        for kind in ("job", "jobset"):
            self.assertEqual(kube.words(self.pods(self.main_object("--kind", kind, *IMAGE, *words))[0]["containers"][0])[-12:], words)

    def test_the_script(self):
        """What the pods of an indexed Job run."""
        for kind, host, least in (("job", "train", "--min-np 4"), ("jobset", "train-pod-0", "--min-np 4"), ("job", "train", "")):
            with self.subTest(kind=kind, least=least):
                thing = self.main_object("--kind", kind, *IMAGE, "--pods", "2:12" if least else 12, "--slots", 2, "a b", "$c", "-d")
                words = kube.words(self.pods(thing)[0]["containers"][0])
                for name in ("hvdrun", "hvdrun-agent"):
                    self.write(name, '#!/bin/sh\nprintf "<%s>" "$0" "$@"\n', 0o755)
                said = []
                for index in (0, 1, 11):
                    result = self.run_program(words, JOB_COMPLETION_INDEX=str(index), PATH=self.box.work + ":" + os.environ["PATH"])
                    said.append(re.sub(r"<[^<>]*/", "<", result.stdout, count=1))
                options = "".join(f"<{word}>" for word in (least or "--start-timeout 10m").split())
                self.assertEqual(said[0], f"<hvdrun><--transport><dial><-H><{host}-[0-11]:2>{options}<a b><$c><-d>")
                self.assertEqual(set(said[1:]), {f"<hvdrun-agent><--dial><{host}-0.train:4000>"})

    def run_program(self, words, **env):
        from jobs import Job  # pylint: disable=import-outside-toplevel
        return self.expect(Job(self.box, words, env=env).wait(), 0)

    def test_names_agree(self):
        """Names that one object has for another one, or for a part of itself."""
        for kind in ("job", "jobset"):
            things = self.objects("--kind", kind, "--name", "abc", "--namespace", "ml", "--with-secret", *IMAGE, "--pods", "3:5", "true")
            by_kind = {}
            for thing in things:
                self.assertEqual(thing["metadata"]["namespace"], "ml")
                by_kind.setdefault(thing["kind"], []).append(thing)
            self.assertEqual({thing["metadata"]["name"] for thing in things}, {"abc", "abc-driver"})
            self.assertEqual("Service" in by_kind, kind == "job")  # JobSet makes it
            label = {"job-name": "abc"} if kind == "job" else {"jobset.sigs.k8s.io/jobset-name": "abc"}
            pod, = self.pods(things[-1])
            container, = pod["containers"]
            self.assertEqual(pod["subdomain"], "abc")
            self.assertEqual(pod["volumes"][0]["secret"]["secretName"], by_kind["Secret"][0]["metadata"]["name"])
            self.assertEqual({one["name"] for one in container["volumeMounts"]}, {one["name"] for one in pod["volumes"]})
            env = {one["name"]: one["value"] for one in container["env"]}
            mount, = [one["mountPath"] for one in container["volumeMounts"] if one["name"] == "secret"]
            self.assertEqual(env["HVDRUN_DIAL_SECRET"], f"{mount}/{next(iter(by_kind['Secret'][0]['stringData']))}")
            job = things[-1]["spec"] if kind == "job" else things[-1]["spec"]["replicatedJobs"][0]["template"]["spec"]
            for rule in job["podFailurePolicy"]["rules"]:
                self.assertEqual(rule.get("onExitCodes", {}).get("containerName", container["name"]), container["name"])
            policy, = by_kind["NetworkPolicy"]
            self.assertEqual(policy["spec"]["podSelector"]["matchLabels"], label)
            budgets = by_kind["PodDisruptionBudget"]
            self.assertEqual([one["spec"]["minAvailable"] for one in budgets], [1, 2])
            for one in budgets:
                self.assertEqual(one["spec"]["selector"]["matchLabels"], label)

    def test_statuses(self):
        """docs/exit-status.md has the same."""
        with open(os.path.join(SOURCE, "docs/exit-status.md"), encoding="utf-8") as file:
            page = file.read()
        rules = {}
        for rule in self.main_object(*IMAGE, "true")["spec"]["podFailurePolicy"]["rules"]:
            for value in rule.get("onExitCodes", {}).get("values", []):
                rules[value] = rule["action"]
        section = page.partition("## Start again, or never again")[2].partition("\n## ")[0]
        said = {}
        for numbers, action in re.findall(r"^\| ([\d, ]+) \|.*\| (\w+) \|$", section, re.M):
            said.update({int(number): action for number in numbers.split(",")})
        self.assertEqual(rules, said)

    def test_grace(self):
        thing = self.main_object(*IMAGE, "--grace", "2m", "true")
        pod, = self.pods(thing)
        env = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
        self.assertGreater(pod["terminationGracePeriodSeconds"], 120)
        self.assertEqual((env["HVDRUN_GRACE"], env["HVDRUN_DIAL_GRACE"]), ("120s", "120s"))

    def test_gpus_are_slots(self):
        pod, = self.pods(self.main_object(*IMAGE, "--gpus", 4, "true"))
        self.assertEqual(pod["containers"][0]["resources"], {"limits": {"nvidia.com/gpu": 4}})
        self.assertIn("-H 'train-0:4'", pod["containers"][0]["command"][2])
        trainer = self.main_object("--kind", "trainjob", *IMAGE, "--gpus", 4, "true")["spec"]["trainer"]
        gpus = {"nvidia.com/gpu": 4}
        self.assertEqual((trainer["numProcPerNode"], trainer["resourcesPerNode"]), (4, {"limits": gpus, "requests": gpus}))

    def test_operators(self):
        thing = self.main_object("--kind", "mpijob", *IMAGE, "--pods", "2:4", "--slots", 8, "./train")
        launcher, workers = thing["spec"]["mpiReplicaSpecs"].values()
        self.assertEqual((launcher["replicas"], workers["replicas"], thing["spec"]["slotsPerWorker"]), (1, 4, 8))
        self.assertEqual(kube.words(launcher["template"]["spec"]["containers"][0]), [
            "hvdrun", "--host-discovery-script=/etc/mpi/discover_hosts.sh", "--slots-per-host=8", "--min-np=16", "./train"])
        self.assertNotIn("launcherCreationPolicy", thing["spec"])  # hvdrun itself waits for hosts
        fixed = self.main_object("--kind", "mpijob", *IMAGE, "--pods", 4, "./train")["spec"]
        self.assertEqual(fixed["launcherCreationPolicy"], "WaitForWorkersReady")
        self.assertEqual(kube.words(fixed["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]),
                         ["hvdrun", "--hostfile=/etc/mpi/hostfile", "./train"])
        self.assertNotIn("command", workers["template"]["spec"]["containers"][0])
        for words, expected in ((["python3", "t.py"], ["hvdrun", "torchrun", "--no-python", "python3", "t.py"]),
                                (["torchrun", "t.py"], ["hvdrun", "torchrun", "t.py"]),
                                (["--", "-v", "torchrun", "t.py"], ["hvdrun", "-v", "torchrun", "t.py"])):
            thing = self.main_object("--kind", "trainjob", *IMAGE, *words)
            self.assertEqual(kube.words(thing["spec"]["trainer"]), expected)

    def test_secrets(self):
        """There is none, and the command that makes it; or a new one each time."""
        text = self.text(*IMAGE, "--namespace", "ml", "true")
        self.assertNotIn("kind: Secret", text)
        self.assertIn("#   openssl rand -hex 32 | kubectl -n ml create secret generic train --from-file=secret=/dev/stdin\n", text)
        made = {self.objects(*IMAGE, "--with-secret", "true")[0]["stringData"]["secret"] for _ in range(2)}
        self.assertEqual(len(made), 2)
        for secret in made:
            self.assertRegex(secret, r"^[0-9a-f]{64}$")


class Mistakes(Kubernetes):

    def test_mistakes(self):
        for words, said in (
                ((), "needs --image IMAGE"), ((*IMAGE,), "needs the program"), ((*IMAGE, "--"), "needs the program"), ((*IMAGE, ""), "needs the program"),
                (("--image", "", "x"), "--image: '' is not the name of an image"), (("--image", "a b", "x"), "--image: 'a b' is not"),
                ((*IMAGE, "--kind", "pod", "x"), "--kind: 'pod' is not a kind; expected job, jobset, mpijob or trainjob"),
                ((*IMAGE, "--name", "Train", "x"), "--name: 'Train' cannot be a name in Kubernetes"),
                ((*IMAGE, "--name", "1a", "x"), "--name: '1a' cannot"), ((*IMAGE, "--name", "a-", "x"), "--name: 'a-' cannot"),
                ((*IMAGE, "--name", "a.b", "x"), "--name: 'a.b' cannot"), ((*IMAGE, "--name", "a\nb", "x"), "--name: "),
                ((*IMAGE, "--name", "a" * 64, "x"), "--name: "), ((*IMAGE, "--name", "", "x"), "--name: ''"),
                ((*IMAGE, "--name", "a" * 61, "--pods", 12, "x"), rf"is too long: a pod would have the name {'a' * 61}-11"),
                ((*IMAGE, "--namespace", "-x", "x"), "--namespace: '-x' cannot be a namespace"),
                ((*IMAGE, "--pods", 0, "x"), "--pods: "), ((*IMAGE, "--pods", "4:2", "x"), "--pods: '4:2' has more pods at least"),
                ((*IMAGE, "--pods", "2:", "x"), "--pods: "), ((*IMAGE, "--pods", "1:2:3", "x"), "--pods: "),
                ((*IMAGE, "--pods", 100001, "x"), "--pods: "), ((*IMAGE, "--slots", 0, "x"), "--slots: "),
                ((*IMAGE, "--gpus", -1, "x"), "--gpus: "), ((*IMAGE, "--grace", "soon", "x"), "--grace: "),
                ((*IMAGE, "--grace", "8d", "x"), "--grace: .*longer than 7 days"), ((*IMAGE, "--grace"), "--grace needs a value"),
                ((*IMAGE, "--with-secret=x", "x"), "--with-secret takes no value"),
                ((*IMAGE, "--kind", "mpijob", "--with-secret", "x"), "--with-secret: --kind mpijob does not use a secret"),
                ((*IMAGE, "--kind", "trainjob", "--pods", "1:2", "x"), "--pods: a TrainJob has a fixed number of pods"),
                ((*IMAGE, "--kind", "trainjob", "--grace", "1m", "x"), "--grace: the runtime of a TrainJob says"),
                ((*IMAGE, "--kind", "trainjob", "--", "--hang-timeout", "10m", "python3", "t.py"),
                 "torchrun is missing behind the options of hvdrun; write -- OPTIONS torchrun --no-python PROGRAM"),
                ((*IMAGE, "--grace", 0, "x"), "--grace: '0' is not longer than 0"), ((*IMAGE, "--kind", "a\nb", "x"), r"--kind: 'a\?b'"),
                ((*IMAGE, "--pods", "a\nb", "x"), r"--pods: 'a\?b'"), ((*IMAGE, "--a\nb", "x"), r"the option '--a\?b'"),
                ((*IMAGE, "--gpu", 1, "x"), "does not have the option '--gpu': did you mean '--gpus'.*options of the job follow '--'"),
                ((*IMAGE, b"\xff"), "is not UTF-8")):
            with self.subTest(words=words):
                result = self.expect(self.run_job("kubernetes", *words), 2)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr, rf"^hvdrun: .*{said}.*\n\Z")

    def test_help(self):
        for words in (["kubernetes", "--help"], ["kubernetes", "-h"], ["help", "kubernetes"]):
            result = self.expect(self.run_job(*words), 0)
            self.assertRegex(result.stdout, r"Usage: hvdrun kubernetes \[OPTIONS\]")
            self.assertLess(max(map(len, result.stdout.split("\n"))), 101)
        self.assertIn("kubernetes", self.expect(self.run_job("--help"), 0).stdout)
        self.assertIn("did you mean 'hvdrun kubernetes'?", self.expect(self.run_job("kubernete", "x"), 2).stderr)


if __name__ == "__main__":
    main()
