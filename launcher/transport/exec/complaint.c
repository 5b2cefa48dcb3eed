/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/exec/complaint.h"

#include <stdio.h>
#include <string.h>

struct complaint_rule {
    const char *says; /* a part of a line, in any case of letters */
    enum transport_stage stage;
    const char *why;
};

/* The order counts: what explains more comes first. */
static const struct complaint_rule of_ssh[] = {
    {"bad configuration option", STAGE_CONFIG,
     "ssh does not understand its configuration: correct the line that it names"},
    {"bad owner or permissions", STAGE_CONFIG,
     "ssh refuses a configuration file that other users can write: run chmod 600 on it"},
    {"remote host identification has changed", STAGE_HOST_KEY,
     "the host's key is not the one in known_hosts: if the host was reinstalled, remove the old "
     "key with ssh-keygen -R; if not, another machine may pose as the host"},
    {"host key verification failed", STAGE_HOST_KEY,
     "the host's key is not known: check it and add it to known_hosts, by connecting once with ssh "
     "or with ssh-keyscan"},
    {"revoked host key", STAGE_HOST_KEY, "the host's key is marked as revoked in known_hosts"},
    {"too many authentication failures", STAGE_AUTH,
     "the key agent offered too many other keys first: name the right one with --ssh-identity-file "
     "and set IdentitiesOnly yes in ~/.ssh/config"},
    {"permission denied (", STAGE_AUTH,
     "the host accepts none of your keys for this user: add a public key to its "
     "~/.ssh/authorized_keys, or name user and key (--ssh-user, --ssh-identity-file)"},
    {"no supported authentication methods", STAGE_AUTH,
     "the host does not accept keys: enable PubkeyAuthentication in its sshd_config"},
    {"could not resolve hostname", STAGE_RESOLVE,
     "the name is not known to DNS or /etc/hosts: correct it or add it there"},
    {"connection refused", STAGE_CONNECT,
     "no SSH server listens there: start sshd, or name its port (--ssh-port)"},
    {"connection timed out", STAGE_CONNECT,
     "nothing answers: is the host up, and does a firewall drop SSH?"},
    {"operation timed out", STAGE_CONNECT,
     "nothing answers: is the host up, and does a firewall drop SSH?"},
    {"no route to host", STAGE_CONNECT,
     "the host cannot be reached: is it up, is its address right?"},
    {"network is unreachable", STAGE_CONNECT, "this machine has no route to the host's network"},
    {"unable to negotiate", STAGE_HANDSHAKE,
     "ssh and the host's sshd have no algorithm in common: update the older one, or allow one in "
     "~/.ssh/config"},
    {"kex_exchange_identification", STAGE_HANDSHAKE,
     "the host's sshd closed the connection before the handshake: too many connections at once "
     "(raise its MaxStartups or lower --ssh-window), or it refuses this machine"},
    {"ssh_exchange_identification", STAGE_HANDSHAKE,
     "the host's sshd closed the connection before the handshake: too many connections at once "
     "(raise its MaxStartups or lower --ssh-window), or it refuses this machine"},
    {"connection reset", STAGE_HANDSHAKE, "the host's sshd reset the connection: see its log"},
    {"connection closed by", STAGE_HANDSHAKE, "the host's sshd closed the connection: see its log"},
};

static const struct complaint_rule of_all[] = {
    {"\"/bin/sh\": stat", STAGE_START,
     "the container has no /bin/sh, which hvdrun needs to start its agent: use an image with a "
     "shell"},
    {"/bin/sh\": executable file not found", STAGE_START,
     "the container has no /bin/sh, which hvdrun needs to start its agent: use an image with a "
     "shell"},
    {"/bin/sh: no such file", STAGE_START,
     "the host has no /bin/sh, which hvdrun needs to start its agent"},
    {"the input device is not a tty", STAGE_START,
     "the command asks for a terminal: remove its option for that (-t)"},
    {"permission denied while trying to connect to the docker", STAGE_CONNECT,
     "you may not use Docker's socket: run hvdrun as root or as a member of the group docker"},
    {"cannot connect to the docker daemon", STAGE_CONNECT,
     "Docker's daemon does not answer: start it, or correct DOCKER_HOST"},
    {"no such container", STAGE_CONNECT,
     "no container has this name: compare it with the names that 'docker ps' or 'podman ps' "
     "prints"},
    {"running containers: container state improper", STAGE_CONNECT,
     "the container is not running, or is paused: start or unpause it"},
    {"unpause the container before exec", STAGE_CONNECT, "the container is paused: unpause it"},
    {"was refused - did you specify the right host or port", STAGE_CONNECT,
     "no Kubernetes cluster answers there: correct the context of kubectl, or KUBECONFIG"},
    {"error from server (notfound): pods", STAGE_CONNECT,
     "no pod has this name in the namespace of kubectl's context: compare it with the names that "
     "'kubectl get pods' prints"},
    {" is not running", STAGE_CONNECT, "the container is not running: start it"},
};

static const struct complaint_rule *find(const struct complaint_rule *entries, size_t count,
                                         const char *text, const char **where)
{
    for (size_t i = 0; i < count; i++) {
        *where = strcasestr(text, entries[i].says);
        if (*where != NULL)
            return &entries[i];
    }
    return NULL;
}

bool exec_complaint_find(const char *text, bool is_ssh, struct exec_complaint *out)
{
    const char *where = NULL;
    const struct complaint_rule *entry =
        find(of_all, sizeof(of_all) / sizeof(of_all[0]), text, &where);
    if (entry == NULL && is_ssh)
        entry = find(of_ssh, sizeof(of_ssh) / sizeof(of_ssh[0]), text, &where);
    if (entry == NULL)
        return false;
    while (where > text && where[-1] != '\n')
        where--;
    *out = (struct exec_complaint){.stage = entry->stage, .why = entry->why};
    snprintf(out->line, sizeof(out->line), "%.*s", (int)strcspn(where, "\n"), where);
    return true;
}
