#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT: builds hvdrun for glibc 2.28 and newer, and writes a relocatable tar.gz, a wheel and an .rpm into OUT.
#
# Everything is compiled on Debian 11, in a folder of its own that is removed at the end. OpenSSL, libssh2 and
# PMIx come from the packages of Debian 12, which still gets security updates, and Gloo from the source package of
# Debian 13. All of them come from the mirror that apt uses here. Needs root, debootstrap and unshare.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source="$(dirname "$here")"
glibc=2.28

# shellcheck source=packaging/debian.sh
. "$here/debian.sh"

[[ $# -eq 1 ]] || fail "which folder? packaging/build.sh OUT"
mkdir -p "$1"
out="$(cd "$1" && pwd)"
begin git
security="$(targets 's/^Debian\|[a-z]+-security\|//p')"
files="$folder/files.tar"
git -C "$source" ls-files -z --cached --others --exclude-standard |
    tar -C "$source" --null -T - --ignore-failed-read --warning=no-failed-read -cf "$files"
date="${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct)}"

step() { # WHAT COMMAND...: its output is shown only if it fails
    local what="$1"
    shift
    echo "build: $what"
    if ! "$@"; then
        tail -n 30 "$log" >&2
        fail "cannot do this: $what"
    fi
}

inside() { # SCRIPT: a shell runs it on the other Debian
    apart --mount-proc="$root/proc" chroot "$root" env -i \
        LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp TZ=UTC \
        ${http_proxy+"http_proxy=$http_proxy"} SOURCE_DATE_EPOCH="$date" sh -euc "$1"
}

echo "build: makes a Debian 11"
make_system bullseye
cp /etc/resolv.conf /etc/hosts "$root/etc/"
step "installs compilers and libraries" inside "apt-get -q update
    apt-get -q -y --no-install-recommends install build-essential cmake ninja-build pkg-config protobuf-c-compiler python3 rpm \
        libevent-dev libhwloc-dev libinih-dev libyaml-dev libjansson-dev libprotobuf-c-dev libncurses-dev libdw-dev \
        zlib1g-dev libopenmpi-dev"
step "adds libraries of newer releases" inside "
    echo 'deb $mirror bookworm main
${security:+deb $security bookworm-security main}
deb-src $mirror trixie main' >/etc/apt/sources.list.d/newer.list
    apt-get -q update
    mkdir /newer && cd /newer
    apt-get -q download libssl-dev libssh2-1-dev libpmix-dev libpmix2
    for package in *.deb; do dpkg-deb -x \$package /; done
    apt-get -q source --download-only --tar-only gloo
    mkdir gloo && tar -C gloo -xf gloo_*.orig.tar.*"
step "builds Gloo" inside "
    cmake -S /newer/gloo -B /newer/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGLOO_INSTALL=ON -DUSE_REDIS=OFF \
        -DUSE_IBVERBS=OFF -DUSE_LIBUV=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    ninja -C /newer/build install
    install -D /newer/gloo/LICENSE /usr/share/doc/gloo/copyright"
mkdir "$root/source"
tar -C "$root/source" --no-same-owner -xf "$files"

build() { # LIBDIR TARGET...: lib for a folder of one's own, lib64 where .rpm packages have it
    local libdir="$1"
    shift
    step "builds $*" inside "
        cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DHVDRUN_PORTABLE=ON -DHVDRUN_LAUNCHER_FLAGS=-O1 \
            -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR=$libdir
        ninja -C /build && ninja -C /build $*"
}

build lib package_tar wheel
build lib64 package_rpm
step "looks at what needs which glibc" inside "python3 -B /source/packaging/glibc.py $glibc /build/package_tar/stage"
for file in "$root"/build/hvdrun-*.{tar.gz,whl,rpm}; do
    cp "$file" "$out/"
    echo "build: wrote $out/${file##*/}"
done
