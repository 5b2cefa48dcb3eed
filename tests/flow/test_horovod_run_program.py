# SPDX-License-Identifier: Apache-2.0
"""Which hvdrun horovod.run() starts, when somebody puts one where the package looks for it."""
# ctest plain

import os
import shutil
import sys

from jobs import Job
from python import package_environment
from rig import SOURCE, Flow, main


class Programs(Flow):
    """Which hvdrun is run."""

    def launched(self, package, mode=0o644):
        """The package is at this place; hvdrun of the PATH says so."""
        shutil.copytree(os.path.join(SOURCE, "runtime/python/horovod"), self.box.path(package), ignore=shutil.ignore_patterns("__pycache__"))
        os.chmod(os.path.join(self.box.path(package), "runner/__init__.py"), mode)
        self.write("path/hvdrun", "#!/bin/sh\necho path\n", mode=0o755)
        program = self.write("program.py", "import horovod\ntry:\n    horovod.run(len)\nexcept RuntimeError:\n    pass\n")
        env = package_environment(PATH=os.pathsep.join([self.box.path("path"), os.environ["PATH"]]))
        env["PYTHONPATH"] = os.path.dirname(self.box.path(package))
        return self.expect(Job(self.box, [sys.executable, program], env=env).wait(60), 0).lines

    def stranger(self, *places):
        made = [self.write(place, "#!/bin/sh\necho beside\n", mode=0o755) for place in places]
        for path in made:
            while path != self.box.path("x"):
                os.chmod(path, 0o755)
                path = os.path.dirname(path)
        return made

    def test_a_package_at_any_place(self):
        """Whoever may write three folders above it does not get in."""
        self.stranger("x/hvdrun", "x/bin/hvdrun")
        self.assertEqual(self.launched("x/a/b/c/horovod"), ["path"])

    def test_that_of_the_installation(self):
        self.stranger("x/bin/hvdrun")
        self.assertEqual(self.launched("x/lib/hvdrun/python/horovod"), ["beside"])

    def test_that_of_the_wheel(self):
        self.stranger("x/hvdrun/bin/hvdrun")
        self.assertEqual(self.launched("x/horovod"), ["beside"])

    def test_where_others_can_write(self):
        """The program, its folder, or the folder of that: its group, which is not that of the package, or all."""
        beside, = self.stranger("x/hvdrun/bin/hvdrun")
        folder = os.path.dirname(beside)
        for number, place in enumerate((beside, folder, os.path.dirname(folder))):
            for mode in (0o775, 0o757, 0o1757):
                os.chmod(place, mode)
                self.assertEqual(self.launched("x/horovod"), ["path"], (number, oct(mode)))
                shutil.rmtree(self.box.path("x/horovod"))
            os.chmod(place, 0o755)
        self.assertEqual(self.launched("x/horovod"), ["beside"])

    def test_the_group_of_the_package(self):
        """Who can write to the package may write to the program, too."""
        beside, = self.stranger("x/hvdrun/bin/hvdrun")
        os.chmod(beside, 0o775)
        self.assertEqual(self.launched("x/horovod", 0o664), ["beside"])

    def test_links(self):
        """Whoever owns a folder that a link leads to owns the program."""
        other, = self.stranger("x/other/hvdrun")
        os.makedirs(self.box.path("x/hvdrun/bin"), 0o755)
        os.symlink(other, self.box.path("x/hvdrun/bin/hvdrun"))
        self.assertEqual(self.launched("x/horovod"), ["path"])
        shutil.rmtree(self.box.path("x"))
        self.stranger("x/other/bin/hvdrun")
        os.symlink("other", self.box.path("x/hvdrun"))
        self.assertEqual(self.launched("x/horovod"), ["path"])

    def test_a_folder_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a folder away")
        beside, = self.stranger("x/hvdrun/bin/hvdrun")
        os.chown(os.path.dirname(os.path.dirname(beside)), 65534, 65534)
        self.assertEqual(self.launched("x/horovod"), ["path"])

    def test_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a file away")
        for path in self.stranger("x/bin/hvdrun"):
            os.chown(path, 65534, 65534)
        self.assertEqual(self.launched("x/lib/hvdrun/python/horovod"), ["path"])


if __name__ == "__main__":
    main()
