#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# start.sh [COMMAND...]: the command of each container. It runs an SSH server, with keys that all
# containers share. If you give a COMMAND, it waits for the servers of the other containers. Then it runs
# COMMAND beside its own server, and ends with the status of COMMAND.
set -eu

# The first container makes the keys, on a volume that only these containers can read.
make_keys() {
    if [ ! -e /keys/ready ]; then
        rm -f /keys/host /keys/user
        ssh-keygen -q -t ed25519 -N '' -C trainer -f /keys/host
        ssh-keygen -q -t ed25519 -N '' -C trainer -f /keys/user
        touch /keys/ready
    fi
}

take_keys() {
    mkdir -p "$HOME/.ssh"
    chmod 700 "$HOME/.ssh"
    cp /keys/user "$HOME/.ssh/id_ed25519"
    cp /keys/user.pub "$HOME/.ssh/authorized_keys"
    for name in $TRAINERS; do
        echo "$name $(cat /keys/host.pub)"
    done >"$HOME/.ssh/known_hosts"
}

# The name server may not know a container yet that is about to start, and RES_OPTIONS limits the wait for its answer.
wait_for() { # NAME
    tries=0
    until RES_OPTIONS="timeout:1 attempts:1" ssh -o BatchMode=yes -o ConnectTimeout=2 "$1" true 2>/dev/null; do
        tries=$((tries + 1))
        if [ "$tries" -ge 60 ]; then
            echo "start.sh: no login to $1 succeeded: look at the log of that container" >&2
            exit 1
        fi
        sleep 1
    done
}

(
    flock 9
    make_keys
) 9>/keys/lock
take_keys
mkdir -p /run/sshd
set_up="-h /keys/host -o PidFile=none -o UsePAM=no -o PasswordAuthentication=no"
if [ $# -eq 0 ]; then
    # shellcheck disable=SC2086 # options, one a word
    exec /usr/sbin/sshd -D -e $set_up
fi
# shellcheck disable=SC2086
/usr/sbin/sshd $set_up
for name in $TRAINERS; do
    wait_for "$name"
done
exec "$@"
