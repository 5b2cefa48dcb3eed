# SPDX-License-Identifier: Apache-2.0
"""The way into a box: a program of the tests starts itself again inside, or says what is missing."""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77  # the exit status that ctest shows as skipped
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def missing():
    """What keeps the rig from being built here, in words; "" when nothing does."""
    if os.geteuid() != 0:
        return "root"
    tools = ["unshare", "nsenter", "ip", "nft", "tc", "mount", "ssh", "ssh-keygen", "sshd", "bash"]
    absent = [tool for tool in tools if shutil.which(tool) is None]
    if absent:
        return "these programs: " + " ".join(absent)
    probe = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "sh", "-c",
         "mount -t tmpfs tmpfs /mnt && ip link add rigbr type bridge && ip link add v0 type veth peer name v1 &&"
         " echo 'table bridge t' | nft -f -"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        return f"the right to make namespaces, a bridge and a packet filter ({probe.stderr.strip()})"
    return ""


def enter(folders):
    """Starts this program again in a box from which these folders are seen. Does not return."""
    os.environ["PATH"] = os.environ.get("PATH", "") + ":" + SYSTEM_PATH
    lack = missing()
    if lack:
        print(f"skipped: many hosts on one machine need {lack}", flush=True)
        sys.exit(SKIPPED)
    python = [os.path.dirname(os.path.dirname(sys.executable))]
    keep = {os.path.realpath(path) for path in [*folders, *python]}
    keep = {path for path in keep if not any(path.startswith(other + os.sep) for other in keep)}
    os.environ["HVDRUN_RIG_KEEP"] = ":".join(sorted(keep))
    flags = ["-B"] if sys.dont_write_bytecode else []
    script = os.path.abspath(sys.argv[0])
    os.execv(os.path.join(HERE, "box"),
             ["box", sys.executable, *flags, os.path.join(HERE, "keeper.py"), sys.executable, *flags, script,
              *sys.argv[1:]])
