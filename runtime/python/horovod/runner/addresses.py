# SPDX-License-Identifier: Apache-2.0
"""The addresses of this machine that mean the same machine on other hosts, too."""
import contextlib
import fcntl
import ipaddress
import os
import socket
import struct

SIOCGIFADDR = 0x8915
GLOBAL = "00"  # the scope of an address in /proc/net/if_inet6
NOWHERE = "0" * 32  # with a prefix of no bits, the default route in /proc/net/ipv6_route
LOOPBACK = "127.0.0.1"


def _lines(path):
    try:
        with open(path, encoding="ascii") as file:
            return [line.split() for line in file]
    except OSError:
        return []  # a kernel without it


def _ipv4():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has none
                answer = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", name.encode()))
                yield name, socket.inet_ntoa(answer[20:24])


def _ipv6():
    for digits, _, _, scope, _, name in _lines("/proc/net/if_inet6"):
        if scope == GLOBAL:
            yield name, socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))


def _joins_guests(name):
    """A bridge to containers or guests on this machine: other hosts may have one with the same address. If the network
    card of this machine is in the bridge, the default route leads there."""
    routed = {line[0] for line in _lines("/proc/net/route") if line[1] == "00000000"}
    routed |= {line[-1] for line in _lines("/proc/net/ipv6_route") if line[:2] == [NOWHERE, "00"]}
    return name not in routed and os.path.isdir(f"/sys/class/net/{name}/bridge")


def find_addresses():
    """For workers on other hosts: IPv4 first, and this machine's name last. Bridges to guests only where there is
    nothing else, and loopback only if there is nothing at all: other hosts are simulated ones then."""
    found = [(name, one) for name, one in [*_ipv4(), *_ipv6()] if not one.startswith("127.") and one != "::1"]
    chosen = [one for name, one in found if not _joins_guests(name)] or [one for _, one in found]
    return [*dict.fromkeys([*chosen, socket.gethostname()])] if chosen else [LOOPBACK]


def _is_here(address):
    """Whether whoever connects there reaches the machine where it runs."""
    address = ipaddress.ip_address(address.split("%")[0])
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def resolve(name, port):
    """The addresses to connect to. A name can lead to another machine here than where it was given, and often that of
    a machine is in its own /etc/hosts with a loopback address. There, a stranger on this machine could listen."""
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    if name != LOOPBACK:
        found = [one for one in found if not _is_here(one[4][0])]
    if not found:
        raise OSError("it leads to this machine itself")
    return found
