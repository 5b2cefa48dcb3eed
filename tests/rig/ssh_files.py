# SPDX-License-Identifier: Apache-2.0
"""Keys, server configuration and known_hosts of the rig, made on first use below $HVDRUN_RIG/ssh."""

import os
import re
import subprocess

TYPES = {"ed25519": [], "ecdsa": ["-b", "256"], "rsa": ["-b", "2048"]}
SERVER_KEYS = ("ed25519", "ecdsa")


def folder():
    return os.path.join(os.environ["HVDRUN_RIG"], "ssh")


def _generate(path, kind, passphrase, more=()):
    if not os.path.exists(path):
        subprocess.run(["ssh-keygen", "-q", "-t", kind, *TYPES[kind], *more, "-N", passphrase, "-C", "rig", "-f", path],
                       check=True, stdin=subprocess.DEVNULL)
    return path


def client_key(kind="ed25519", passphrase="", pem=False, trusted=True):
    """The path of a private key; a trusted one opens every host."""
    name = f"id_{kind}{'_locked' if passphrase else ''}{'_pem' if pem else ''}{'' if trusted else '_stranger'}"
    path = os.path.join(folder(), name)
    if not os.path.exists(path):
        _generate(path, kind, passphrase, ["-m", "PEM"] if pem else [])
        if trusted:
            with open(path + ".pub", encoding="ascii") as public, \
                    open(os.path.join(folder(), "authorized_keys"), "a", encoding="ascii") as file:
                file.write(public.read())
    return path


def server_key(kind, name="host"):
    return _generate(os.path.join(folder(), f"{name}_{kind}"), kind, "")


def public(path):
    """Type and base64 of a key, as known_hosts has it."""
    with open(path + ".pub", encoding="ascii") as file:
        return " ".join(file.read().split()[:2])


def known_hosts_lines(names, kinds=SERVER_KEYS, key_name="host"):
    return "".join(f"{names} {public(server_key(kind, key_name))}\n" for kind in kinds)


def _no_penalties():
    """Servers of OpenSSH 9.8 and newer turn whoever has failed away for a while: not what is tested."""
    told = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=False).stderr
    version = re.match(r"OpenSSH_(\d+)\.(\d+)", told)
    return ["PerSourcePenalties no"] if version and tuple(map(int, version.groups())) >= (9, 8) else []


def make_server_files():
    client_key()
    lines = [f"HostKey {server_key(kind)}" for kind in SERVER_KEYS]
    lines += _no_penalties()
    lines += f"""Port 22
PidFile none
UsePAM no
StrictModes no
AuthorizedKeysFile {folder()}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100:30:200
MaxSessions 100
LoginGraceTime 30
UseDNS no
PrintMotd no
PrintLastLog no
PermitUserEnvironment no
AllowTcpForwarding yes""".split("\n")
    with open(os.path.join(folder(), "sshd_config"), "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
