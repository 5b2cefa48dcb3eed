# SPDX-License-Identifier: Apache-2.0
"""Host keys: what is believed, what is refused, and with which words."""

import re
import subprocess

from ground import worker
from hosts import Hosts, main, ssh_files

FINGERPRINT = r"SHA256:[A-Za-z0-9+/]{43}"


def fingerprint(path):
    text = subprocess.run(["ssh-keygen", "-l", "-f", path + ".pub"], capture_output=True, text=True, check=True).stdout
    return re.search(FINGERPRINT, text).group()


class Trust(Hosts):

    def hello(self, *args):
        return self.ssh_job("-H", "node1:1", *args, worker("hello"))

    def expect_trusted(self, *args):
        result = self.expect(self.hello(*args), 0)
        self.expect_lines(result, ["[0]<stdout>:hello from rank 0 of 1"])
        return result

    def expect_refused(self, pattern, *args):
        result = self.expect(self.hello(*args), 125)
        self.expect_said(result, rf"node1\b.*host key.*{pattern}")
        self.assertEqual(result.stdout, "")
        return result

    def test_an_unknown_host_is_added(self):
        before = "# mine\n10.9.9.9 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
        self.write_known_hosts(before)
        self.expect_trusted()
        after = self.read_known_hosts()
        self.assertTrue(after.startswith(before), after)
        added = after[len(before):].splitlines()
        self.assertEqual(len(added), 1, after)
        self.assertIn(" ".join(added[0].split()[1:3]),
                      [ssh_files.public(ssh_files.server_key(kind)) for kind in ssh_files.SERVER_KEYS])
        # from then on it is known, to the ssh program too
        self.expect_trusted("--ssh-strict")
        self.assertEqual(self.plain_ssh("node1", "true")[0], 0)
        self.assertEqual(self.read_known_hosts(), after)

    def test_a_file_without_a_newline_at_its_end_is_not_torn(self):
        line = ssh_files.known_hosts_lines("node2", ["ed25519"])
        self.write_known_hosts(line.rstrip("\n"))
        self.expect_trusted()
        self.assertEqual(self.read_known_hosts().splitlines()[0], line.rstrip("\n"))
        self.assertEqual(len(self.read_known_hosts().splitlines()), 2)

    def test_strict_refuses_an_unknown_host(self):
        self.write_known_hosts("")
        result = self.expect_refused(FINGERPRINT, "--ssh-strict")
        self.expect_said(result, r"--ssh-strict|known_hosts")
        self.assertEqual(self.read_known_hosts(), "")

    def test_strict_in_the_configuration_counts(self):
        self.write_known_hosts("")
        self.write_ssh_config("StrictHostKeyChecking yes\n")
        self.expect_refused(FINGERPRINT)

    def test_a_changed_key_is_refused_with_both_fingerprints(self):
        stranger = ssh_files.server_key("ed25519", "other")
        before = f"node1 {ssh_files.public(stranger)}\n"
        self.write_known_hosts(before)
        result = self.expect_refused("changed")
        self.assertIn(fingerprint(stranger), result.stderr, result.describe())
        shown = set(re.findall(FINGERPRINT, result.stderr)) - {fingerprint(stranger)}
        self.assertEqual(shown, {fingerprint(ssh_files.server_key("ed25519"))}, result.describe())
        self.expect_said(result, "ssh-keygen")
        self.assertEqual(self.read_known_hosts(), before)

    def test_a_revoked_key_is_refused(self):
        lines = ssh_files.known_hosts_lines("node1")
        revoked = "".join(f"@revoked * {ssh_files.public(ssh_files.server_key(kind))}\n" for kind in ssh_files.SERVER_KEYS)
        self.write_known_hosts(lines + revoked)
        self.expect_refused("revoked")

    def test_any_known_type_is_asked_for(self):
        # the server prefers ecdsa; only the other one is known
        self.write_known_hosts(ssh_files.known_hosts_lines("node1", ["ed25519"]))
        self.expect_trusted("--ssh-strict")

    def test_wildcards_and_negation(self):
        self.write_known_hosts(ssh_files.known_hosts_lines("node?,!node3"))
        self.expect_trusted("--ssh-strict")
        result = self.expect(self.ssh_job("-H", "node3:1", "--ssh-strict", worker("hello")), 125)
        self.expect_said(result, "node3.*host key")

    def test_hashed_names(self):
        self.write_known_hosts(ssh_files.known_hosts_lines("node1"))
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", self.known_hosts], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        self.assertNotIn("node1", self.read_known_hosts())
        self.expect_trusted("--ssh-strict")

    def test_a_port_has_its_own_line(self):
        other = ssh_files.server_key("ed25519", "other")
        self.host(1).server(2222, f"HostKey {other}")
        self.write_known_hosts(ssh_files.known_hosts_lines("node1") + f"[node1]:2222 {ssh_files.public(other)}\n")
        self.expect_trusted("--ssh-strict")
        self.expect_trusted("--ssh-strict", "--ssh-port", 2222)

    def test_a_system_wide_file(self):
        path = self.write("global_known_hosts", ssh_files.known_hosts_lines("node1"))
        self.write_known_hosts("")
        self.write_ssh_config(f"GlobalKnownHostsFile {path}\n")
        self.expect_trusted("--ssh-strict")
        self.assertEqual(self.read_known_hosts(), "")

    def test_alias_of_the_host_key(self):
        self.write_known_hosts(ssh_files.known_hosts_lines("cluster"))
        self.write_ssh_config("Host node1\n  HostKeyAlias cluster\n")
        self.expect_trusted("--ssh-strict")

    def test_unchecked_by_the_configuration(self):
        # OpenSSH goes on with a changed key then, and so do we, but the file stays as it is
        before = f"node1 {ssh_files.public(ssh_files.server_key('ed25519', 'other'))}\n"
        self.write_known_hosts(before)
        self.write_ssh_config("StrictHostKeyChecking no\n")
        self.expect_trusted()
        self.assertEqual(self.read_known_hosts(), before)
        self.expect_refused("changed", "--ssh-strict")

    def test_certificate_authority_goes_by_the_ssh_program(self):
        authority = ssh_files.server_key("ed25519", "authority")
        key = ssh_files.server_key("ed25519", "certified")
        subprocess.run(["ssh-keygen", "-q", "-s", authority, "-I", "node1", "-h", "-n", "node1", key + ".pub"], check=True)
        self.host(1).server(2222, f"HostKey {key}", f"HostCertificate {key}-cert.pub")
        self.write_known_hosts(f"@cert-authority * {ssh_files.public(authority)}\n")
        result = self.expect_trusted("--ssh-strict", "--ssh-port", 2222, "-v")
        self.expect_said(result, r"node1.*\bssh program")
        stranger = ssh_files.server_key("ed25519", "other")
        self.write_known_hosts(f"@cert-authority * {ssh_files.public(stranger)}\n")
        self.expect(self.hello("--ssh-strict", "--ssh-port", 2222), 125)

    def test_a_server_with_only_an_rsa_host_key(self):
        key = ssh_files.server_key("rsa")
        self.host(1).server(2222, f"HostKey {key}")
        self.write_known_hosts(f"[node1]:2222 {ssh_files.public(key)}\n")
        self.expect_trusted("--ssh-strict", "--ssh-port", 2222)


if __name__ == "__main__":
    main()
