# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What build.sh and oci_image.sh share. They make a Debian below $root, from the mirror that apt uses here. All that
# runs there is in namespaces of its own, so no mount is seen outside, and it ends before $root is removed.

fail() { # MESSAGE [STATUS]: 77 says that this machine cannot do it
    echo "${0##*/}: $1" >&2
    exit "${2:-1}"
}

targets() { # PATTERN: the first match in what apt has here, one "ORIGIN|CODENAME|ADDRESS" a line
    # shellcheck disable=SC2016 # apt-get fills in what the format names
    apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|$(REPO_URI)' 'Created-By: Packages' | sed -nE "$1" | sed -n 1p
}

begin() { # PROGRAM...: sets folder, root, log and mirror
    local program
    [[ $EUID -eq 0 ]] || fail "debootstrap needs root: run the command as root" 77
    for program in debootstrap unshare apt-get "$@"; do
        command -v "$program" >/dev/null || fail "$program is not installed: on Debian, apt-get install $program" 77
    done
    mirror="$(targets 's/^Debian\|[a-z]+\|//p')"
    [[ -n "$mirror" ]] || fail "apt knows no mirror of Debian: run this on Debian" 77
    eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
    [[ -z "${http_proxy-}" ]] || export http_proxy
    running='' folder=''
    trap end EXIT
    trap 'exit 1' HUP INT TERM
    folder="$(mktemp -d "${TMPDIR:-/tmp}/hvdrun-packaging-XXXXXX")"
    root="$folder/root"
    log="$folder/log"
}

end() {
    trap '' HUP INT TERM
    local tries=0
    [[ -z "$running" ]] || { kill -KILL "$running" && wait "$running"; } 2>/dev/null || true # all that it started ends, too
    until rm -rf --one-file-system "$folder" 2>/dev/null; do
        ((++tries < 100)) || { echo "${0##*/}: cannot remove $folder" >&2 && break; }
        sleep 0.1
    done
}

apart() { # UNSHARE_ARGUMENT...: in namespaces of its own; what it prints goes to the log
    local status=0
    unshare --mount --pid --fork --kill-child=SIGKILL "$@" >"$log" 2>&1 </dev/null &
    running=$!
    wait "$running" || status=$?
    running=''
    return "$status"
}

make_system() { # SUITE
    apart debootstrap --force-check-gpg --variant=minbase "$1" "$root" "$mirror" ||
        fail "debootstrap cannot make Debian's $1 here: $(tail -n 1 "$log")" 77
}
