# SPDX-License-Identifier: Apache-2.0
"""Many SSH hosts that are one machine: an sshd on all of 127.0.0.0/8, in a box of the rig.

begin(name) starts the calling program again inside a box, or says what is missing. The box is a set of namespaces
without a route out, and ends with the program. The hosts are h1, h2...: names in /etc/hosts of the box. Each has its
own address, and one sshd serves all of them. The keys are where ssh looks for them (~/.ssh of the box), so no program
needs an option or a configuration file. The server offers only one key exchange, curve25519, so that all programs use
the same. All hosts share one /tmp, so only the first host that needs the agent's program gets a copy.
"""

import os
import resource
import shutil
import subprocess
import sys
import time

import bench
import entrance
import ssh_files
from ground import BUILD, HVDRUN, SOURCE

FLOOR = os.path.join(BUILD, "tests/bench/floor_ssh")
TICK = os.sysconf("SC_CLK_TCK")
AGENTS = "/tmp/hvdrun-0"


def begin(title, hosts=400):
    """Enters the box and returns the World of so many hosts. `title` begins the message if that is not possible."""
    bench.begin()
    if not os.access(FLOOR, os.X_OK):
        sys.exit(f"{title}: no {FLOOR}: build the target bench_floors")
    if "HVDRUN_RIG_KEEPER" not in os.environ:
        lack = entrance.missing()
        if lack:
            print(f"skipped: SSH hosts on one machine need {lack}")
            sys.exit(0)
        entrance.enter([SOURCE, BUILD, os.path.dirname(HVDRUN)])
    return World(hosts)


def address(number):
    return f"127.77.{number // 200}.{number % 200 + 1}"


class World:

    def __init__(self, hosts):
        self.top = os.environ["HVDRUN_RIG"]
        self.home = os.path.join(self.top, "home")
        self.known_hosts = os.path.join(self.home, ".ssh/known_hosts")
        self.key = os.path.join(self.home, ".ssh/id_ed25519")
        os.environ.update(HOME=self.home, USER="root", LOGNAME="root", OMPI_ALLOW_RUN_AS_ROOT="1",
                          OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", TMPDIR="/tmp", LC_ALL="C.UTF-8")
        os.environ.pop("XDG_RUNTIME_DIR", None)
        self._name_hosts(hosts)
        self._make_keys(hosts)
        self._start_server()

    def _name_hosts(self, hosts):
        with open(os.path.join(self.top, "etc/hosts"), "w", encoding="ascii") as file:
            file.write("127.0.0.1 localhost launcher\n")
            file.writelines(f"{address(number)} h{number}\n" for number in range(1, hosts + 1))

    def _make_keys(self, hosts):
        ssh_files.make_server_files()
        os.makedirs(os.path.join(self.home, ".ssh"), mode=0o700, exist_ok=True)
        for end in ("", ".pub"):
            shutil.copy(ssh_files.client_key() + end, self.key + end)
        self._known = "".join(ssh_files.known_hosts_lines(f"h{number},{address(number)}", ["ed25519"])
                              for number in range(1, hosts + 1))
        self.know_hosts()

    def _start_server(self):
        path = os.path.join(ssh_files.folder(), "sshd_config_bench")
        with open(os.path.join(ssh_files.folder(), "sshd_config"), encoding="ascii") as file:
            lines = [line for line in file.read().split("\n") if not line.startswith("MaxStartups")]
        # one key exchange for all: ssh would choose sntrup761, which costs it 90 ms and which libssh2 does not have
        lines += ["MaxStartups 2000", "AddressFamily inet", "KexAlgorithms curve25519-sha256", ""]
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join(lines))
        os.makedirs("/run/sshd", exist_ok=True)
        self.server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", path], stdin=subprocess.DEVNULL)
        bench.wait_for(self._answers, "sshd answers")

    def _answers(self):
        done = subprocess.run(["ssh", "-oBatchMode=yes", "h1", "true"], stdin=subprocess.DEVNULL, check=False,
                              stderr=subprocess.DEVNULL)
        return done.returncode == 0

    def close(self):
        self.server.terminate()
        self.server.wait()

    @staticmethod
    def environment(**more):
        """Without the benchmark's own variables HVDRUN_..., which hvdrun would read as options."""
        return {**{name: value for name, value in os.environ.items() if not name.startswith("HVDRUN")}, **more}

    # CPU time of both ends

    def _server_ticks(self):
        with open(f"/proc/{self.server.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15]))

    def _is_quiet(self):
        with open(f"/proc/{self.server.pid}/task/{self.server.pid}/children", encoding="ascii") as file:
            return not file.read().strip()

    def wait_quiet(self):
        bench.wait_for(self._is_quiet, "the hosts are quiet", period=0.005)

    def measure(self, argv, timeout=120, **options):
        """Runs a command. Returns {"wall", "own", "hosts"} in seconds, or {"error": text}. "own" is the CPU time of the
        command, "hosts" that of sshd and all its descendants. Returns when the hosts are quiet again."""
        before, ticks = resource.getrusage(resource.RUSAGE_CHILDREN), self._server_ticks()
        options = {"stdout": subprocess.DEVNULL, "env": self.environment(), **options}
        began = time.monotonic()
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=timeout, **options)
        except subprocess.TimeoutExpired:
            return {"error": f"still running after {timeout} s"}
        wall = time.monotonic() - began
        self.wait_quiet()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            return {"error": f"status {done.returncode}: {done.stderr.strip()[-300:]}"}
        return {"wall": wall, "own": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                "hosts": (self._server_ticks() - ticks) / TICK}

    def floor(self, numbers, *options, command="true"):
        return [FLOOR, *options, "root", self.key, self.known_hosts, command, *map(address, numbers)]

    @staticmethod
    def hvdrun(numbers, *words):
        return [HVDRUN, "--transport", "ssh", "-H", ",".join(f"h{number}:1" for number in numbers), *words]

    def know_hosts(self, known=True, others=0):
        """Writes known_hosts anew: the keys of all hosts, or of none, below those of so many `others`."""
        key = self._known.split("\n", 1)[0].split(" ", 1)[1]
        with open(self.known_hosts, "w", encoding="ascii") as file:
            file.writelines(f"other{number},10.1.{number >> 8}.{number & 255} {key}\n" for number in range(others))
            file.write(self._known if known else "")

    @staticmethod
    def forget_agent():
        """Removes the agent's program, as on hosts that never had it."""
        shutil.rmtree(AGENTS, ignore_errors=True)
