#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# oci_image.sh ARCHIVE LAYOUT TAG: writes an OCI image into the folder LAYOUT: a small Debian 12 with the tree of
# ARCHIVE, the tar.gz of packaging/build.sh. Its command is hvdrun, its user `hvdrun`, and it has no SSH server.
#
# The system comes from the mirror that apt uses here. Needs root, debootstrap, unshare and umoci.
set -euo pipefail

# shellcheck source=packaging/debian.sh
. "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

[[ $# -eq 3 ]] || fail "what into which folder? packaging/oci_image.sh ARCHIVE LAYOUT TAG"
archive="$1"
layout="$2"
tag="$3"
[[ -f "$archive" ]] || fail "there is no $archive: run packaging/build.sh first"
[[ "$archive" == *-glibc2.28.tar.gz ]] || fail "$archive needs libraries that the image lacks: take the one of packaging/build.sh"
begin umoci

quietly() { # COMMAND...
    if ! "$@" >>"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        fail "$1 failed"
    fi
}

make_system bookworm
mkdir "$root/opt/hvdrun"
quietly tar -C "$root/opt/hvdrun" --strip-components=1 -xzf "$archive"
for program in hvdrun hvdrun-agent; do ln -s "/opt/hvdrun/bin/$program" "$root/usr/local/bin/$program"; done
quietly chroot "$root" /usr/sbin/useradd --create-home --uid 1000 hvdrun
find "$root"/{tmp,dev,run,var/cache/apt,var/lib/apt/lists,var/log} -xdev -mindepth 1 -delete
rm -rf "$root"/etc/{resolv.conf,hostname} "$root"/usr/share/{locale,man,doc-base,info}
find "$root/usr/share/doc" -type f ! -name copyright -delete # licences stay
find "$root" -xdev -type f -perm /6000 -exec chmod ug-s {} + # nothing makes a user into root

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
