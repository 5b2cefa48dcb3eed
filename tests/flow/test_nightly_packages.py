# SPDX-License-Identifier: Apache-2.0
# ctest limit: 10800
"""The packages of packaging/build.sh: what they need, and that they run on clean systems, old and new."""

import glob
import os
import re
import subprocess
import sys

from ground import SOURCE
from rig import Flow, main
from systems import System, built_packages

SUITES = ("bullseye", "bookworm", "trixie")
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libutil.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
OF_THE_HOST = {"hvdrun-pmix.so": {"libpmix.so.2"}, "hvdrun-topology.so": {"libhwloc.so.15"}, "hvd-mpi.so": {"libmpi.so.40"},
               "hvdrun-unwind.so": {"libdw.so.1", "libelf.so.1"}, "hvdrun-screen.so": {"libncursesw.so.6", "libtinfo.so.6"}}
PYTHON = "from horovod.common.basics import HorovodBasics as B; b = B(); b.init(); print('rank', b.rank(), 'of', b.size())"
MPI = """#include <mpi.h>
#include <stdio.h>
int main(int n, char **v) { int r, s; MPI_Init(&n, &v); MPI_Comm_rank(MPI_COMM_WORLD, &r); MPI_Comm_size(MPI_COMM_WORLD, &s);
MPI_Barrier(MPI_COMM_WORLD); printf("MPI rank %d of %d\\n", r, s); return MPI_Finalize(); }
"""
KEYS = """umask 77
mkdir .ssh
ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519
cp .ssh/id_ed25519.pub .ssh/authorized_keys
sed 's/^/127.0.0.1 /' /etc/ssh/ssh_host_ed25519_key.pub >.ssh/known_hosts
head -c 32 /dev/urandom | base64 >secret
"""
DIAL = """for name in pod-0 pod-1; do
    /srv/hvdrun-0.1.0/bin/hvdrun-agent --dial localhost:4000 --dial-secret secret --name $name &
done
hvdrun --transport dial --dial-port 4000 --dial-secret secret -H pod-0,pod-1 sh -c 'echo rank $RANK on $HVDRUN_HOSTNAME'
wait
"""


class Packages(Flow):

    def setUp(self):
        super().setUp()
        self.packages = built_packages()
        self.tar, self.wheel, self.rpm = (glob.glob(f"{self.packages}/*.{end}")[0] for end in ("tar.gz", "whl", "rpm"))
        self.binds = [(self.packages, "/packages")]

    def make_system(self, suite):
        self.system = System(suite)
        self.addCleanup(self.system.close)
        self.system.run("useradd", "-m", "tester")
        subprocess.run(["tar", "-C", f"{self.system.root}/srv", "-xzf", self.tar], check=True)
        os.symlink("/srv/hvdrun-0.1.0/bin/hvdrun", f"{self.system.root}/usr/local/bin/hvdrun")

    def as_user(self, command, status=0):
        return self.system.run("su", "-", "tester", "-c", command, binds=self.binds, status=status)

    def test_what_they_need(self):
        self.assertIn("-glibc2.28.tar.gz", self.tar)
        self.assertIn("-manylinux_2_28_", self.wheel)
        tree = self.box.path("tree")
        os.mkdir(tree)
        subprocess.run(["tar", "-C", tree, "-xzf", self.tar], check=True)
        subprocess.run([sys.executable, "-B", f"{SOURCE}/packaging/glibc.py", "2.28", tree], check=True)
        found = [name for place in ("bin/*", "lib/*.so", "lib/hvd/*", "lib/hvdrun/hvdrun-*") for name in glob.glob(f"{tree}/*/{place}")]
        self.assertGreater(len(found), 10)
        for name in found:
            told = subprocess.run(["readelf", "-d", name], check=True, capture_output=True, text=True).stdout
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", told))
            self.assertEqual(needed - LIBC - OF_THE_HOST.get(os.path.basename(name), set()), set(), name)
        self.assertTrue({"libssl-dev", "gloo"} <= set(os.listdir(f"{tree}/hvdrun-0.1.0/share/doc/hvdrun/contains")))

    def test_tree_on_clean_systems(self):
        for suite in SUITES:
            with self.subTest(suite):
                self.make_system(suite)
                self.has_pmix = suite != "bullseye"  # Debian 11 has PMIx 4.0, which is too old
                for look in (self.see_jobs, self.see_remote, self.see_mpi, self.see_libhvd, self.see_python):
                    with self.subTest(look.__name__):
                        look()
                self.system.close()

    def see_jobs(self):
        """With nothing but the tree, which the user cannot write to."""
        self.assertIn("rank 3 of 4", self.as_user("hvdrun -np 4 sh -c 'echo rank $RANK of $WORLD_SIZE'"))
        self.assertIn("rank 1 of 2", self.as_user("hvdrun -H a:1,b:1 --transport local sh -c 'echo rank $RANK of $WORLD_SIZE'"))
        told = self.as_user("hvdrun -H a:1,b:1 --launch-agent 'env TMPDIR=/dev/shm HOST=%h' sh -c 'echo rank $RANK of $WORLD_SIZE'")
        self.assertIn("rank 1 of 2", told)
        told = self.as_user("hvdrun --version")
        self.assertRegex(told, r"OpenSSL +3\S* +in the module\n")
        self.assertRegex(told, r"PMIx +\S+ +cannot be loaded: libpmix.so.2")

    def see_remote(self):
        """SSH, and agents that dial in over TLS, in a network of their own."""
        self.system.install("openssh-server", "openssh-client", "iproute2")
        self.as_user(KEYS)
        for name, script in (("ssh", "hvdrun --transport ssh -H 127.0.0.1:2 sh -c 'echo rank $RANK of $WORLD_SIZE'"), ("dial", DIAL)):
            with open(f"{self.system.root}/srv/{name}", "w", encoding="ascii") as file:
                file.write(script)
        told = self.system.run("unshare", "--net", "sh", "-ec", "ip link set lo up\nmkdir -p /run/sshd\n/usr/sbin/sshd\n"
                               "su - tester -c 'sh -e /srv/ssh'\nsu - tester -c 'sh -e /srv/dial'")
        self.assertIn("rank 1 of 2", told)
        self.assertIn("rank 0 on pod-0", told)
        self.assertIn("rank 1 on pod-1", told)

    def see_mpi(self):
        self.system.install("gcc", "libc6-dev", "pkg-config", "openmpi-bin", "libopenmpi-dev")
        with open(f"{self.system.root}/srv/mpi.c", "w", encoding="ascii") as file:
            file.write(MPI)
        self.system.run("mpicc", "-o", "/srv/mpi", "/srv/mpi.c")
        self.system.install("mpich", "libmpich-dev")
        self.system.run("mpicc.mpich", "-o", "/srv/mpich", "/srv/mpi.c")
        self.assertIn("MPI rank 1 of 2", self.as_user("hvdrun -np 2 /srv/mpich"))
        if self.has_pmix:
            self.assertIn("MPI rank 1 of 2", self.as_user("hvdrun -np 2 /srv/mpi"))
        else:
            self.assertIn("need the PMIx library, 4.2 or newer", self.as_user("hvdrun -np 2 /srv/mpi", status=125))

    def see_libhvd(self):
        self.system.take(f"{SOURCE}/examples/libhvd/fit.c", "/srv/fit.c")
        self.system.run("sh", "-ec", "export PKG_CONFIG_PATH=/srv/hvdrun-0.1.0/lib/pkgconfig\n"
                        "cc -o /srv/fit /srv/fit.c $(pkg-config --cflags --libs hvd) -Wl,-rpath,/srv/hvdrun-0.1.0/lib")
        for engine in ("gloo", "mpi") if self.has_pmix else ("gloo",):
            told = self.as_user(f"HOROVOD_CONTROLLER={engine} hvdrun -np 2 /srv/fit")
            self.assertIn("2 ranks: y = 3.000 x + 1.000", told)

    def see_python(self):
        self.system.install("python3", "python3-venv")
        self.assertIn("rank 1 of 2", self.as_user(f'hvdrun -np 2 python3 -c "{PYTHON}"'))
        self.as_user("python3 -m venv env && env/bin/pip install -q --no-index --no-deps /packages/*.whl")
        self.assertIn("rank 1 of 2", self.as_user(f'env/bin/hvdrun --horovod none -np 2 env/bin/python3 -c "{PYTHON}"'))

    def test_rpm(self):
        """Debian's rpm stands for that of others."""
        system = self.system = System("bookworm")
        self.addCleanup(system.close)
        system.install("rpm")
        system.run("useradd", "-m", "tester")
        rpm = f"/packages/{os.path.basename(self.rpm)}"
        needed = system.run("rpm", "-qp", "--requires", rpm, binds=self.binds)
        self.assertNotRegex(needed, r"GLIBC_2\.(29|[3-9]\d)|lib(pmix|mpi|hwloc|dw|ssl|crypto|ssh2)\.")
        self.assertIn("libc.so.6(GLIBC_2.27)", needed)
        self.assertIn("libhvd.so.0()(64bit)", system.run("rpm", "-qp", "--provides", rpm, binds=self.binds))
        self.assertIn("/usr/lib64/hvdrun/hvdrun-ssh.so", system.run("rpm", "-qlp", rpm, binds=self.binds))
        system.run("rpm", "-i", "--nodeps", rpm, binds=self.binds)
        self.assertIn("rank 3 of 4", self.as_user("hvdrun -np 4 sh -c 'echo rank $RANK of $WORLD_SIZE'"))
        system.run("rpm", "-e", "hvdrun")
        self.assertEqual(system.run("find", "/usr", "-name", "*hvdrun*").split(), [])


if __name__ == "__main__":
    main()
