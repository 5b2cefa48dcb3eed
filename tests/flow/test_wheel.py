# SPDX-License-Identifier: Apache-2.0
"""The wheel: pip installs it without a network into a fresh environment, which then has hvdrun and horovod."""
# ctest long
# ctest plain

import os
import re
import subprocess
import zipfile

from jobs import Job
from python import python_with
from rig import BUILD, SOURCE, Flow, main

WHICH = "import horovod, sys; import horovod.torch as hvd; hvd.init(); print(horovod.__file__.startswith(sys.prefix), hvd.size())"


class Wheel(Flow):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch", "cloudpickle", "pip", "venv")

    def call(self, *command, **env):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=120,
                              cwd=self.box.work, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env})
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def make(self, name):
        """As the target `wheel` of the build does."""
        stage, out = self.box.path(f"{name}/stage"), self.box.path(name)
        self.call("cmake", "--install", BUILD, "--prefix", stage, "--component", "launcher", "--strip")
        if not os.path.exists(os.path.join(stage, "lib/libhvd.so.0")):
            self.skipTest("the build installs its libraries into another folder than lib")
        made = self.call(self.python, "-B", os.path.join(SOURCE, "packaging/wheel.py"), stage, out, "0.1.0", os.uname().machine)
        return made.strip()

    def test_wheel(self):
        wheel = self.make("one")
        self.assertRegex(os.path.basename(wheel), rf"^hvdrun-0\.1\.0-py3-none-manylinux_2_\d+_{os.uname().machine}\.whl$")
        with open(wheel, "rb") as one, open(self.make("two"), "rb") as two:
            self.assertEqual(one.read(), two.read(), "two wheels of one build differ")
        with zipfile.ZipFile(wheel) as file:
            names = file.namelist()
            self.assertEqual(len(names), len(set(names)))
            self.assertFalse([name for name in names if re.search(r"__pycache__|\.(a|h|pc|cmake)$|pyproject", name)])
        self.see_that_it_installs(wheel)

    def see_that_it_installs(self, wheel):
        venv = self.box.path("venv")
        self.call(self.python, "-m", "venv", "--system-site-packages", "--without-pip", venv)
        python, hvdrun = os.path.join(venv, "bin/python3"), os.path.join(venv, "bin/hvdrun")
        self.call(self.python, "-m", "pip", "--python", python, "install", "--no-index", "--no-cache-dir", "--quiet", wheel)
        self.assertIn("hvdrun 0.1.0", self.call(hvdrun, "--version"))
        env = {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        result = self.expect(Job(self.box, [python, "-c", WHICH], env=env).wait(60), 0)
        self.assertEqual(result.stdout, "True 1\n", result.describe())
        for options in (), ("--horovod", "none"):
            argv = [hvdrun, *options, "--no-label", "-np", 2, python, "-c", WHICH]
            result = self.expect(Job(self.box, argv, env=env).wait(60), 0)
            self.assertEqual(result.lines, ["True 2"] * 2, result.describe())
        self.run_example(hvdrun, python, env)
        self.call(self.python, "-m", "pip", "--python", python, "uninstall", "--yes", "--quiet", "hvdrun")
        left = [os.path.join(folder, name) for folder, _, names in os.walk(venv) for name in names if re.search("hvd|horovod", name)]
        self.assertEqual(left, [])

    def run_example(self, hvdrun, python, env):
        argv = [hvdrun, "-np", 2, python, os.path.join(SOURCE, "examples/horovod/train.py"), "--epochs", 1]
        result = self.expect(Job(self.box, argv, env=env).wait(120), 0)
        self.assertIn("epoch 1: 2 ranks", result.stdout, result.describe())


if __name__ == "__main__":
    main()
