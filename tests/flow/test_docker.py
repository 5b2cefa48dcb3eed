# SPDX-License-Identifier: Apache-2.0
"""Jobs in containers of the real Docker. test_nightly_docker.py has the faults and the commands of docs/containers.md."""
# ctest waits
# ctest long
# ctest plain

import os

import test_containers
from containers import Containers, main
from docker_engine import Docker
from ground import HVDRUN
from jobs import Job


class Networks(test_containers.Networks):
    pass


class Compose(Containers):

    def test_training(self):
        self.up("trainer-0", "trainer-1")
        result = self.run_job("--transport", "docker", "-H", "trainer-0,trainer-1", "--wdir", "/app", "python3", "train.py")
        lines = self.expect(result, 0).lines
        for rank in (0, 1):
            self.assertIn(f"[{rank}]<stdout>:rank {rank} of 2 in trainer-{rank} continues after step 0", lines, result.describe())
        inside = self.docker("exec", "trainer-1", "hvdrun", "-H", "trainer-0,trainer-1", "hostname")
        self.assertEqual(sorted(inside.splitlines()), ["[0]<stdout>:trainer-0", "[1]<stdout>:trainer-1"])


class Daemon(Containers):
    """What docker says of its daemon becomes one line with the remedy."""

    def expect_line(self, pattern, *before, **env):
        job = Job(self.box, [*before, HVDRUN, "--transport", "docker", "-H", "trainer-0,trainer-1", "true"], env=env)
        result = self.expect(job.wait(), 125)
        lines = result.said.strip().split("\n")
        for name, line in zip(("trainer-0", "trainer-1"), lines):
            self.assertRegex(line, f"^hvdrun: {name}: connect: {pattern}", result.describe())
        self.assertEqual(lines[2:], ["hvdrun: 2 of 2 hosts cannot be reached"], result.describe())

    def test_socket_of_somebody_else(self):
        home = self.box.path("home-of-rigger")
        os.mkdir(home)
        for folder in (home, self.box.root, self.box.work):
            os.chmod(folder, 0o755)
        os.chown(home, 4242, 4242)
        self.expect_line(r"you may not use Docker's socket: run hvdrun as root or as a member of the group docker \(docker: ",
                         "setpriv", "--reuid", "4242", "--regid", "4242", "--clear-groups",
                         TMPDIR=home, HOME=home, XDG_RUNTIME_DIR=home, DOCKER_CONFIG=home)

    def test_no_daemon(self):
        self.expect_line(r"Docker's daemon does not answer: start it, or correct DOCKER_HOST \(docker: ",
                         DOCKER_HOST="unix:///run/absent.sock")


if __name__ == "__main__":
    main(Docker)
