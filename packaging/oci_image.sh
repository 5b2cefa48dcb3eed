#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# oci_image.sh ARCHIVE LAYOUT TAG: writes an OCI image into the folder LAYOUT: a small Debian 12 with the tree of
# ARCHIVE, the tar.gz of packaging/build.sh. Its command is hvdrun, its user `hvdrun`, and it has no SSH server.
#
# The system comes from the mirror that apt uses here. Needs root, debootstrap, unshare and umoci.
set -euo pipefail
archive="$1"
layout="$2"
tag="$3"
release=bookworm

fail() { # MESSAGE
    echo "oci_image: $1" >&2
    exit 1
}

[[ -f "$archive" ]] || fail "there is no $archive: run packaging/build.sh first"
[[ "$archive" == *-glibc2.28.tar.gz ]] || fail "$archive needs libraries that the image lacks: take the one of packaging/build.sh"
[[ $EUID -eq 0 ]] || fail "debootstrap needs root: run the command as root"
for program in debootstrap umoci unshare apt-get; do
    command -v "$program" >/dev/null || fail "$program is not installed: install it, on Debian with apt-get install $program"
done
# shellcheck disable=SC2016 # apt-get fills in what the format names
mirror="$(apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|$(REPO_URI)' 'Created-By: Packages' |
    sed -nE "s/^Debian\|[a-z]+\|//p" | head -n 1)"
[[ -n "$mirror" ]] || fail "apt knows no mirror of Debian: run this on Debian"
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

quietly unshare --mount --pid --fork --kill-child=SIGKILL debootstrap --variant=minbase "$release" "$root" "$mirror"
mkdir "$root/opt/hvdrun"
quietly tar -C "$root/opt/hvdrun" --strip-components=1 -xzf "$archive"
for program in hvdrun hvdrun-agent; do ln -s "/opt/hvdrun/bin/$program" "$root/usr/local/bin/$program"; done
quietly chroot "$root" /usr/sbin/useradd --create-home --uid 1000 hvdrun
find "$root"/{tmp,dev,run,var/cache/apt,var/lib/apt/lists,var/log} -mindepth 1 -delete
rm -rf "$root"/etc/{resolv.conf,hostname} "$root"/usr/share/{locale,man,doc-base,info}
find "$root/usr/share/doc" -type f ! -name copyright -delete # licences stay

quietly umoci init --layout "$folder/layout"
image="$folder/layout:$tag"
quietly umoci new --image "$image"
quietly umoci insert --image "$image" "$root" /
quietly umoci config --image "$image" --author hvdrun --config.user 1000:1000 --config.workingdir /home/hvdrun \
    --config.entrypoint hvdrun --config.cmd --help --config.env PATH=/usr/local/bin:/usr/bin:/bin --config.env HOME=/home/hvdrun
quietly umoci gc --layout "$folder/layout"
rm -rf "$layout"
mv "$folder/layout" "$layout"
echo "oci_image: wrote $layout:$tag"
