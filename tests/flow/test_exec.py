# SPDX-License-Identifier: Apache-2.0
"""The exec transport: any command that gives a duplex pipe to a host."""

import os
import re
import shutil
import unittest

from ground import worker
from hosts import Hosts, main

WHO = 'echo "rank $HOROVOD_RANK on $(hostname)"'
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: absent, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: absent, context: {cluster: absent, user: absent}}]
users: [{name: absent, user: {}}]
current-context: absent
"""


class Exec(Hosts):

    def expect_who(self, result, hosts=("node1", "node2")):
        self.expect(result, 0)
        self.expect_lines(result, [f"[{rank}]<stdout>:rank {rank} on {host}" for rank, host in enumerate(hosts)])

    def agent(self, template, *args, hosts="node1:1,node2:1", env=None):
        return self.run_job("--launch-agent", template, "-H", hosts, *args, "sh", "-c", WHO, env=env)

    def fake(self, name, text):
        """A program of that name first in PATH, which notes its arguments."""
        self.write(f"bin/{name}", f'#!/bin/sh\nfor word do printf "%s\\n" "$word"; done > {self.box.work}/{name}.$$.argv\n{text}',
                   0o755)
        return {"PATH": f"{self.box.work}/bin:{os.environ['PATH']}"}

    def noted(self, name):
        found = []
        for file in sorted(os.listdir(self.box.work)):
            if re.fullmatch(rf"{name}\.\d+\.argv", file):
                with open(self.box.path(file), encoding="utf-8") as one:
                    found.append(one.read().splitlines())
        return sorted(found)

    def into(self, word):
        """A line of shell that goes on inside the host whose name is in `word`."""
        cases = "".join(f"{host.name}) pid={host.init};; " for host in self.rig.hosts)
        return (f"case {word} in {cases}*) echo no such host >&2; exit 1;; esac\n"
                "into=\"nsenter --target $pid --net --mount --uts --ipc --pid -- env -i PATH=/usr/bin:/bin HOME=/tmp\"\n")


class Templates(Exec):

    def test_ssh(self):
        self.expect_who(self.agent(f"ssh -F {self.ssh_config} -x %h"))

    def test_words_are_filled_in(self):
        env = self.fake("reach", self.into("$1") + 'shift 4; exec $into "$@"\n')
        self.expect_who(self.agent("reach %h %p %u %n", hosts="someone@node1:1,node2:1", env=env))
        noted = self.noted("reach")
        self.assertEqual([words[0] for words in noted], ["node1", "node2"])
        self.assertEqual([words[3] for words in noted], ["0", "1"])
        self.assertEqual([words[1:3] for words in noted], [["22", "someone"], ["22", "root"]])

    def test_user_and_port_of_a_hostfile(self):
        env = self.fake("reach", self.into("$1") + 'shift 3; exec $into "$@"\n')
        path = self.write("hostfile", "node1 slots=1 user=ann port=2200\nnode2 slots=1\n")
        result = self.run_job("--launch-agent", "reach %h %p %u", "--hostfile", path, "sh", "-c", WHO, env=env)
        self.expect_who(result)
        self.assertEqual([words[:3] for words in self.noted("reach")], [["node1", "2200", "ann"], ["node2", "22", "root"]])

    def test_quotes_and_no_shell(self):
        env = self.fake("reach", self.into("$4") + 'shift 4; exec $into "$@"\n')
        self.expect_who(self.agent("reach 'two words' \"$HOME;id\" a\\ b %h", env=env))
        for words in self.noted("reach"):
            self.assertEqual(words[:3], ["two words", "$HOME;id", "a b"])

    def test_percent_sign(self):
        env = self.fake("reach", self.into("$2") + 'shift 2; exec $into "$@"\n')
        self.expect_who(self.agent("reach 100%% %h", env=env))
        self.assertEqual([words[0] for words in self.noted("reach")], ["100%", "100%"])

    def test_host_is_appended_when_it_is_not_named(self):
        env = self.fake("kubexec.sh", self.into("$1") + 'shift; exec $into "$@"\n')
        self.expect_who(self.agent("kubexec.sh", env=env))

    def test_unknown_letter(self):
        result = self.expect(self.agent("ssh %q %h"), 2)
        self.expect_said(result, r"%q")

    def test_open_quote(self):
        result = self.expect(self.agent("ssh 'oops %h"), 2)
        self.expect_said(result, "quote")

    def test_empty(self):
        self.expect(self.agent("  "), 2)

    def test_a_program_that_does_not_exist(self):
        result = self.expect(self.agent("no-such-program %h"), 125)
        self.expect_said(result, r"node1.*no-such-program.*not found|node1.*no-such-program.*No such file")

    def test_a_host_name_that_looks_like_an_option(self):
        result = self.expect(self.agent("echo %h", hosts="-oProxyCommand=id:1"), 2)
        self.assertEqual(self.noted("echo"), [])
        self.assertEqual(result.stdout, "")


class Cut(Exec):

    def test_nothing_of_the_agent_stays_when_nobody_hears_the_host(self):
        # its stdout is closed when it has asked for the agent: its next word meets a broken pipe
        env = self.fake("reach", self.into("$1") + "shift; $into \"$@\" | sed -u '/ need/q'\n")
        self.host(1).forget_agent()
        result = self.agent("reach %h", hosts="node1:1", env=env)
        self.assertEqual(self.expect(result, 125).stdout, "")


class Noise(Exec):

    def test_zero_bytes_before_the_first_answer(self):
        env = self.fake("reach", self.into("$1") + "shift; printf 'a\\0b\\r\\n\\0\\0\\r\\nx\\0'; exec $into \"$@\"\n")
        self.expect_who(self.agent("reach %h", env=env))


class Containers(Exec):

    KUBECTL = '[ "$1" = exec ] && [ "$2" = -i ] && [ "$4" = -- ] || { echo "fake kubectl: $*" >&2; exit 9; }\n'
    DOCKER = '[ "$1" = exec ] && [ "$2" = -i ] || { echo "fake docker: $*" >&2; exit 9; }\n'

    def kubectl(self):
        return self.fake("kubectl", self.KUBECTL + self.into("$3") + 'shift 4; exec $into "$@"\n')

    def docker(self):
        return self.fake("docker", self.DOCKER + self.into("$3") + 'shift 3; exec $into "$@"\n')

    def test_kubectl(self):
        result = self.run_job("--transport", "kubectl", "-H", "node1:1,node2:1", "sh", "-c", WHO, env=self.kubectl())
        self.expect_who(result)

    def test_kubectl_template(self):
        self.expect_who(self.agent("kubectl exec -i %h --", env=self.kubectl()))

    def test_docker(self):
        result = self.run_job("--transport", "docker", "-H", "node1:1,node2:1", "sh", "-c", WHO, env=self.docker())
        self.expect_who(result)

    def test_docker_template(self):
        self.expect_who(self.agent("docker exec -i %h", env=self.docker()))

    def test_kubexec_script(self):
        # as the mpi-operator writes it
        env = self.kubectl()
        path = self.write("kubexec.sh", '#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\nkubectl exec -i ${POD_NAME} -- '
                                        '/bin/sh -c "$*"\n', 0o755)
        self.expect_who(self.agent(path, env=env))

    def test_kubexec_script_without_stdin(self):
        # without -i the command has no input: nothing can be sent to it
        env = self.fake("kubectl", '[ "$1" = exec ] || exit 9\nshift\n' + self.into("$1") +
                        'shift 2; exec $into "$@" </dev/null\n')
        path = self.write("kubexec.sh", '#!/bin/sh\nPOD_NAME=$1\nshift\nkubectl exec ${POD_NAME} -- /bin/sh -c "$*"\n',
                          0o755)
        result = self.expect(self.agent(path, "--start-timeout", 10, env=env), 125)
        self.expect_said(result, r"node1.*start.*(\s-i\b|input)")

    def test_a_pod_that_is_not_there(self):
        env = self.fake("kubectl", 'echo "Error from server (NotFound): pods \\"$3\\" not found" >&2; exit 1\n')
        result = self.run_job("--transport", "kubectl", "-H", "node1:1,node2:1", worker("hello"), env=env)
        self.expect(result, 125)
        for host in ("node1", "node2"):
            self.expect_said(result, rf'{host}: connect: no pod has this name [^\n]*pods "{host}" not found')

    @unittest.skipIf(shutil.which("kubectl") is None, "no kubectl (Debian: kubernetes-client)")
    def test_a_cluster_that_does_not_answer(self):
        """The real kubectl. In the box of the hosts, nothing listens on this port."""
        config = self.write("kubeconfig", KUBECONFIG)
        result = self.run_job("--transport", "kubectl", "-H", "node1:1,node2:1", worker("hello"), env={"KUBECONFIG": config})
        lines = self.expect(result, 125).said.strip().split("\n")
        for host, line in zip(("node1", "node2"), lines):
            self.assertRegex(line, rf"^hvdrun: {host}: connect: no Kubernetes cluster answers there: .* \(kubectl: ")
        self.assertEqual(lines[2:], ["hvdrun: 2 of 2 hosts cannot be reached"], result.describe())

    def test_loss_of_the_pipe_ends_the_workers(self):
        gate, _ = self.box.gate()
        job = self.start("--launch-agent", f"ssh -F {self.ssh_config} %h", "-H", "node1:1,node2:1", worker("hang"), "--until",
                         gate)
        job.wait_output("ready", count=2)
        found = [one for one in job.tree() if one.comm == "ssh"]
        self.assertEqual(len(found), 2, job.describe())
        os.kill(found[0].pid, 9)
        self.expect(job.wait(), 121)
        self.wait_no_workers()


if __name__ == "__main__":
    main()
