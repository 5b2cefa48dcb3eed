#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# oci_image.sh PACKAGE LAYOUT TAG: writes an OCI image into the folder LAYOUT: Debian of the release of this
# machine, with hvdrun's PACKAGE. cmake --build build --target oci_image runs it.
#
# The system comes from the mirror that apt uses here. Needs root, debootstrap and umoci.
set -euo pipefail
package="$1"
layout="$2"
tag="$3"

fail() { # MESSAGE
    echo "oci_image: $1" >&2
    exit 1
}

[[ -f "$package" ]] || fail "there is no $package: run cmake --build with --target package first"
[[ $EUID -eq 0 ]] || fail "debootstrap needs root: run the command as root"
for program in debootstrap umoci unshare apt-get; do
    command -v "$program" >/dev/null || fail "$program is not installed: install it, on Debian with apt-get install $program"
done
# shellcheck source=/dev/null
release="$(. /etc/os-release && echo "${VERSION_CODENAME-}")"
# shellcheck disable=SC2016 # apt-get fills in what the format names
mirror="$(apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|$(REPO_URI)' 'Created-By: Packages' |
    sed -n "s/^Debian|$release|//p" | head -n 1)"
[[ -n "$mirror" ]] || fail "apt knows no mirror of Debian $release: run this on Debian"
eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
[[ -z "${http_proxy-}" ]] || export http_proxy

folder="$(mktemp -d)"
trap 'rm -rf --one-file-system "$folder"' EXIT
root="$folder/root"
log="$folder/log"

quietly() { # COMMAND...
    if ! "$@" >>"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        fail "$1 failed"
    fi
}

inside() { # COMMAND...
    quietly unshare --mount --pid --fork --kill-child=SIGKILL --mount-proc="$root/proc" \
        chroot "$root" env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

quietly unshare --mount --pid --fork --kill-child=SIGKILL debootstrap --variant=minbase "$release" "$root" "$mirror"
cp "$package" "$root/tmp/hvdrun.deb"
inside apt-get update
# What the package recommends goes in, without what that recommends in turn.
recommended="$(dpkg-deb --field "$package" Recommends | sed -E 's/ *\([^)]*\)//g; s/ *\|[^,]*//g; s/,/ /g')"
read -ra recommended <<<"$recommended"
inside apt-get install -y --no-install-recommends /tmp/hvdrun.deb "${recommended[@]}"
find "$root"/{tmp,dev,run,var/cache/apt,var/lib/apt/lists,var/log} -mindepth 1 -delete
rm -f "$root"/etc/{resolv.conf,hostname}

quietly umoci init --layout "$folder/layout"
image="$folder/layout:$tag"
quietly umoci new --image "$image"
quietly umoci insert --image "$image" "$root" /
quietly umoci config --image "$image" --author hvdrun --config.cmd /bin/bash \
    --config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
quietly umoci gc --layout "$folder/layout"
rm -rf "$layout"
mv "$folder/layout" "$layout"
echo "oci_image: wrote $layout:$tag"
