# SPDX-License-Identifier: Apache-2.0
"""Which package `horovod` a worker imports (--horovod), horovod.run(), and installations that are not right."""
# ctest long
# ctest plain

import os
import shutil
import subprocess

from jobs import Job
from python import package_environment, python_with
from rig import BUILD, SOURCE, Flow, main

WHICH = "import horovod; print(horovod.__version__)"
REAL = {"horovod/__init__.py": "__version__ = 'real'\n", "horovod/torch/__init__.py": "name = 'real torch'\n"}


class Package(Flow):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch", "cloudpickle")

    def real(self, files=None):
        """A folder of packages in which there is a real Horovod."""
        for name, text in (files or REAL).items():
            self.write(f"site/{name}", text)
        return self.box.path("site")

    def which(self, *options, script=WHICH, env=None, site=None):
        """The workers' Python has `site` behind PYTHONPATH, as a folder of its own packages."""
        if site is not None:
            script = f"import sys; sys.path.append({site!r}); " + script
        result = self.run_job(*options, "-np", 2, "--no-label", self.python, "-c", script,
                              env={"PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
        return result

    def test_without_a_real_one(self):
        for options in ((), ("--horovod", "auto"), ("--horovod", "bundled")):
            result = self.expect(self.which(*options), 0)
            self.assertEqual(result.lines, ["0.28.1+hvdrun"] * 2, result.describe())

    def test_none(self):
        result = self.expect(self.which("--horovod", "none"), 1)
        self.assertIn("No module named 'horovod'", result.stderr)

    def test_a_real_one_wins(self):
        site = self.real()
        script = "import horovod.torch; import horovod; print(horovod.__version__, horovod.torch.name)"
        result = self.expect(self.which(site=site, script=script), 0)
        self.assertEqual(result.lines, ["real real torch"] * 2, result.describe())
        result = self.expect(self.which("--horovod", "bundled", site=site), 0)
        self.assertEqual(result.lines, ["0.28.1+hvdrun"] * 2, result.describe())

    def test_python_path_of_the_user_comes_first(self):
        result = self.expect(self.which("--horovod", "bundled", env={"PYTHONPATH": self.real()}), 0)
        self.assertEqual(result.lines, ["real"] * 2, result.describe())
        result = self.expect(self.which("-x", f"PYTHONPATH={self.real()}"), 0)
        self.assertEqual(result.lines, ["real"] * 2, result.describe())

    def test_two_of_ours(self):
        """As with a wheel: one in the environment, and the one that hvdrun adds. Neither gives way for ever."""
        site = self.box.path("site")
        shutil.copytree(os.path.join(SOURCE, "runtime/python"), site)
        result = self.expect(self.which(site=site), 0)
        self.assertEqual(result.lines, ["0.28.1+hvdrun"] * 2, result.describe())

    def test_a_folder_that_is_not_a_package(self):
        """A folder `horovod` with data beside the script is not Horovod."""
        result = self.expect(self.which(site=self.real({"horovod/notes.txt": "x"})), 0)
        self.assertEqual(result.lines, ["0.28.1+hvdrun"] * 2, result.describe())


class Broken(Flow):
    """An installation with another libhvd, or none."""

    def setUp(self):
        super().setUp()
        self.python = python_with("torch")
        self.package = self.box.path("prefix/lib/hvdrun/python")
        shutil.copytree(os.path.join(SOURCE, "runtime/python/horovod"), os.path.join(self.package, "horovod"),
                        ignore=shutil.ignore_patterns("__pycache__"))

    def import_it(self):
        script = "import horovod.torch"
        env = {**package_environment(), "PYTHONPATH": self.package}
        return Job(self.box, [self.python, "-c", script], env=env).wait(60)

    def last_line(self, result):
        self.assertEqual(result.status, 1, result.describe())
        return result.stderr.strip().split("\n")[-1]

    def test_no_library(self):
        line = self.last_line(self.import_it())
        self.assertRegex(line, r"^ImportError: horovod: cannot load libhvd\.so\.0: .*Install libhvd with hvdrun$")

    def test_a_file_that_is_not_a_library(self):
        self.write("prefix/lib/libhvd.so.0", "text")
        self.assertRegex(self.last_line(self.import_it()), r"^ImportError: horovod: cannot load libhvd\.so\.0: ")

    def test_an_older_library(self):
        source = self.write("old.c", "int hvd_init(void *options) { (void)options; return 0; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.box.path("prefix/lib/libhvd.so.0"), source], check=True)
        line = self.last_line(self.import_it())
        self.assertRegex(line, r"^ImportError: horovod: .*does not have hvd_\w+\(\), so it is older than this package")


PROGRAM = """
import os, signal, sys
import horovod

def task(first, second=0):
    import horovod.torch as hvd
    import torch
    hvd.init()
    if second == "fail" and hvd.rank() == 1:
        os._exit(3)
    if second == "fail":
        signal.pause()
    return hvd.rank(), hvd.allreduce(torch.tensor([float(first)]), op=hvd.Sum).item(), second

if __name__ == "__main__":
    try:
        print(horovod.run(task, args=(2,), kwargs={"second": sys.argv[1]}, num_proc=2))
        print(horovod.run(lambda: [1] * 100000, num_proc=1)[0] == [1] * 100000)
    except RuntimeError as error:
        print("RuntimeError:", error)
"""


HOSTS = """
import os, sys
import horovod

def task():
    import horovod.torch as hvd
    import torch
    hvd.init()
    return os.environ["HVDRUN_HOSTNAME"], hvd.rank(), hvd.allreduce(torch.ones(1), op=hvd.Sum).item()

def place():
    return os.environ["HVDRUN_HOSTNAME"], int(os.environ["HOROVOD_RANK"])

if __name__ == "__main__":
    function, where = (task, {"hosts": sys.argv[1]}) if sys.argv[1] else (place, {"hostfile": sys.argv[2]})
    print(horovod.run(function, num_proc=3, use_gloo=True, **where))
"""


ELASTIC = """
import os, signal, sys
import horovod

def task(killed):
    import horovod.torch as hvd
    import torch
    hvd.init()

    @hvd.elastic.run
    def train(state):
        while state.steps < 4 or hvd.size() < 3:
            hvd.allreduce(torch.ones(1), name="step")
            if state.steps == 2 and hvd.rank() == 2 and not os.path.exists(killed):
                open(killed, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            state.steps += 1
            state.commit()
        return hvd.rank(), hvd.size() >= 3

    return train(hvd.elastic.ObjectState(steps=0))

if __name__ == "__main__":
    print(horovod.run(task, args=(sys.argv[1],), num_proc=3, min_num_proc=2, hosts="a:2,b:2", use_gloo=True))
"""


RAISES = """
import os
import signal
import horovod

def task():
    if os.environ["HOROVOD_RANK"] == "1":
        raise ValueError("no\\nsuch file")
    signal.pause()

if __name__ == "__main__":
    try:
        horovod.run(task, num_proc=2)
    except RuntimeError as error:
        print(error)
        print("cause:", error.__cause__)
"""


class Run(Flow):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch", "cloudpickle")
        self.program = self.write("program.py", PROGRAM)

    def run_program(self, *words, program=None, **env):
        env = package_environment(PATH=os.pathsep.join([BUILD, os.environ["PATH"]]), **env)
        return Job(self.box, [self.python, program or self.program, *words], env=env).wait(120)

    def test_results_of_all_ranks(self):
        result = self.expect(self.run_program("x"), 0)
        self.assertEqual(result.lines, ["[(0, 4.0, 'x'), (1, 4.0, 'x')]", "True"], result.describe())

    def test_several_hosts(self):
        """Simulated ones, each with an agent of its own; the other ones are in flow.hosts_horovod."""
        program = self.write("hosts.py", HOSTS)
        result = self.expect(self.run_program("a:1,b:2", program=program, HVDRUN_TRANSPORT="local"), 0)
        self.assertEqual(result.lines, ["[('a', 0, 3.0), ('b', 1, 3.0), ('b', 2, 3.0)]"], result.describe())

    def test_a_hostfile(self):
        program, hostfile = self.write("hosts.py", HOSTS), self.write("hostfile", "a slots=1\nb slots=2\n")
        result = self.expect(self.run_program("", hostfile, program=program, HVDRUN_TRANSPORT="local"), 0)
        self.assertEqual(result.lines, ["[('a', 0), ('b', 1), ('b', 2)]"], result.describe())

    def test_an_elastic_job(self):
        """A rank is lost, another one takes its place, and the results are those of the first ranks."""
        program = self.write("elastic.py", ELASTIC)
        result = self.expect(self.run_program(self.box.path("killed"), program=program, HVDRUN_TRANSPORT="local"), 0)
        self.assertEqual(result.lines[-1], "[(0, True), (1, True)]", result.describe())
        self.assertTrue(os.path.exists(self.box.path("killed")), result.describe())

    def test_mpi(self):
        if not os.path.exists(os.path.join(BUILD, "lib/hvd/hvd-mpi.so")):
            self.skipTest("the engine mpi was not built")
        program = self.write("mpi.py", """
import horovod

def task():
    import horovod.torch as hvd
    import torch
    hvd.init()
    return hvd.mpi_enabled(), hvd.allreduce(torch.ones(1), op=hvd.Sum).item()

if __name__ == "__main__":
    print(horovod.run(task, num_proc=2, use_mpi=True))
""")
        result = self.expect(self.run_program(program=program), 0)
        self.assertEqual(result.lines, ["[(True, 2.0), (True, 2.0)]"], result.describe())

    def test_a_worker_fails(self):
        result = self.expect(self.run_program("fail"), 0)
        self.assertRegex(result.stdout, r"RuntimeError: Horovod detected that one or more processes exited with non-zero status.*"
                                        r"hvdrun ended with status 3: rank 1 exited with code 3\n")
        self.assertIn("rank 1 exited with code 3", result.stderr)

    def raised(self, **env):
        """The rank's exception, as the program sees it."""
        program = self.write("raises.py", RAISES)
        result = self.expect(self.run_program(program=program, **env), 0)
        return result.stdout.split("\ncause: ")

    def test_an_exception(self):
        told, cause = self.raised()
        self.assertRegex(told, r"status 1: rank 1 exited with code 1: ValueError: no such file$")
        self.assertRegex(cause, r"(?s)^on rank 1\nTraceback .*raises\.py.*ValueError: no\nsuch file")

    def test_the_user_has_the_report(self):
        """hvdrun writes it where the user wants it."""
        path = self.box.path("report.json")
        told, cause = self.raised(HVDRUN_REPORT=path)
        self.assertIn("status 1; its messages say why", told)
        self.assertEqual(cause, "None\n")
        self.assertEqual(self.read_json(path)["job"]["cause"]["rank"], 1)

    def test_arguments_that_contradict(self):
        program = self.write("wrong.py", """
import horovod
for more in ({"hosts": "a:1", "hostfile": "f"}, {"use_gloo": True, "use_mpi": True}):
    try:
        horovod.run(print, num_proc=1, **more)
    except ValueError as error:
        print(error)
""")
        result = self.expect(self.run_program(program=program), 0)
        self.assertEqual(len(result.lines), 2, result.describe())


if __name__ == "__main__":
    main()
