# SPDX-License-Identifier: Apache-2.0
"""The rig's network: one bridge in the launcher's namespace, a veth for each host, and its faults.

Hosts are numbered from 0. Host K is the (10+K)th of 10.77.0.0/16, and its MAC never changes. With another MAC after a
restart, the ARP entries of the other hosts would lead nowhere for a minute. The launcher is 10.77.0.1.
"""

import subprocess

LAUNCHER = "10.77.0.1"
BRIDGE = "rigbr"


def address(number):
    return "10.77.%d.%d" % divmod(10 + number, 256)


def call(*argv, text=None):
    """Runs a tool that must not fail."""
    done = subprocess.run([str(word) for word in argv], input=text, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, argv))}: {done.stdout}{text or ''}")
    return done.stdout


def make_bridge():
    call("ip", "-batch", "-", text=f"link add {BRIDGE} type bridge\naddr add {LAUNCHER}/16 dev {BRIDGE}\n"
                                   f"link set {BRIDGE} up\n")


def plug(numbers):
    """Network namespaces rig0, rig1... with an eth0 on the bridge."""
    for number in numbers:
        call("ip", "netns", "add", f"rig{number}")
    call("ip", "-batch", "-", text="".join(
        f"link add v{n} type veth peer name eth0 address 02:77:00:00:{n >> 8:02x}:{n & 255:02x} netns rig{n}\n"
        f"link set v{n} master {BRIDGE} up\n" for n in numbers))
    for n in numbers:
        call("ip", "-n", f"rig{n}", "-batch", "-",
             text=f"link set lo up\naddr add {address(n)}/16 dev eth0\nlink set eth0 up\n")


def unplug(number):
    """With all its sockets, which would else live on in the old namespace."""
    subprocess.run(["ip", "link", "del", f"v{number}"], check=False, stderr=subprocess.DEVNULL)
    call("ip", "netns", "del", f"rig{number}")


def link(number, up):
    call("ip", "link", "set", f"v{number}", "up" if up else "down")


def limit_rate(number, rate):
    """Makes the way to the host and back slow ("10mbit"); None: fast again."""
    for tool in (["tc"], ["ip", "netns", "exec", f"rig{number}", "tc"]):
        device = f"v{number}" if tool == ["tc"] else "eth0"
        if rate is None:
            subprocess.run([*tool, "qdisc", "del", "dev", device, "root"], check=False, stderr=subprocess.DEVNULL)
        else:
            call(*tool, "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "32k",
                 "latency", "400ms")


def switch_rules(rules):
    """What the bridge drops: nft rules for packets that it forwards, takes in or sends out."""
    text = "table bridge rig\ndelete table bridge rig\n"
    if rules:
        body = "\n".join(rules)
        chains = "".join(f"chain {hook} {{ type filter hook {hook} priority 0;\n{body}\n}}\n"
                         for hook in ("forward", "input", "output"))
        text += f"table bridge rig {{\n{chains}}}\n"
    call("nft", "-f", "-", text=text)


def host_rules(number, rules):
    """What the host itself does to incoming packets."""
    text = "table inet rig\ndelete table inet rig\n"
    if rules:
        body = "\n".join(rules)
        text += f"table inet rig {{\nchain input {{ type filter hook input priority 0;\n{body}\n}}\n}}\n"
    call("ip", "netns", "exec", f"rig{number}", "nft", "-f", "-", text=text)
