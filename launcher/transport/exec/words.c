/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/exec/words.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "model/settings/split.h"

#define TEMPLATE_MAX ((size_t)65536)
#define PORT_DEFAULT 22

static int check_percents(const char *word, struct error *err)
{
    for (const char *at = strchr(word, '%'); at != NULL; at = strchr(at + 2, '%')) {
        if (at[1] == '\0' || strchr("hpun%", at[1]) == NULL)
            return error_usage(err,
                               "unknown %%%.1s in the command '%s': %%h is the host, %%p the "
                               "port, %%u the user, %%n the node's number, %%%% a percent sign",
                               at + 1, word);
    }
    return 0;
}

int exec_template_parse(const char *text, struct strv *words, struct error *err)
{
    if (words_split(text, words, err) < 0)
        return -1;
    for (size_t i = 0; i < words->count; i++) {
        if (check_percents(words->items[i], err) < 0)
            return -1;
    }
    return 0;
}

static int add_name(const char *what, const char *name, struct buf *out, struct error *err)
{
    if (!name_is_safe(name, strlen(name)))
        return error_usage(err, "'%s' cannot be the name of a %s", name, what);
    buf_puts(out, name);
    return 0;
}

static int add_user(const struct transport_target *target, struct buf *out, struct error *err)
{
    const struct passwd *own = target->user == NULL ? getpwuid(geteuid()) : NULL;
    const char *user = own != NULL ? own->pw_name : target->user;
    if (user == NULL)
        return error_set(err,
                         "user %u has no name on this machine, but %%u needs one: name a user with "
                         "the host (user@host)",
                         (unsigned)geteuid());
    return add_name("user", user, out, err);
}

static const char *host_of(const struct transport_target *target)
{
    return target->address != NULL ? target->address : target->host;
}

static int add_value(char letter, const struct transport_target *target, struct buf *out,
                     struct error *err)
{
    switch (letter) {
    case 'h': return add_name("host", host_of(target), out, err);
    case 'p': return buf_printf(out, "%d", target->port > 0 ? target->port : PORT_DEFAULT);
    case 'u': return add_user(target, out, err);
    case 'n': return buf_printf(out, "%d", target->node);
    default: return buf_putc(out, '%');
    }
}

static int fill_word(const char *word, const struct transport_target *target, struct strv *argv,
                     bool *has_host, struct error *err)
{
    struct buf out AUTO_BUF = BUF_INIT(2 * TEMPLATE_MAX);
    while (*word != '\0') {
        size_t plain = strcspn(word, "%");
        buf_append(&out, word, plain);
        word += plain;
        if (*word == '\0')
            break;
        *has_host = *has_host || word[1] == 'h';
        if (add_value(word[1], target, &out, err) < 0)
            return -1;
        word += word[1] == '\0' ? 1 : 2;
    }
    strv_add(argv, buf_text(&out));
    return 0;
}

int exec_template_fill(const struct strv *words, const struct transport_target *target,
                       const char *last_word, struct strv *argv, struct error *err)
{
    bool has_host = false;
    for (size_t i = 0; i < words->count; i++) {
        if (fill_word(words->items[i], target, argv, &has_host, err) < 0)
            return -1;
    }
    if (last_word == NULL)
        return 0;
    if (!has_host && fill_word("%h", target, argv, &has_host, err) < 0)
        return -1;
    strv_add(argv, last_word);
    return 0;
}

struct complaint_rule {
    const char *says; /* a part of a line, in any case of letters */
    enum transport_stage stage;
    const char *why;
};

/* Each list ends with an empty rule. The order counts: what explains more comes first. */
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
    {0},
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
    {0},
};

/* Each fails a start. */
static const struct complaint_rule of_slurm[] = {
    {"execve(): permission denied", STAGE_START,
     "the node may not execute hvdrun-agent: is its file system mounted noexec there?"},
    {"execve()", STAGE_START,
     "the node does not have hvdrun-agent: put hvdrun on a file system that the nodes "
     "share, or let Slurm copy it with --srun-args '--bcast=/tmp/hvdrun-agent'"},
    {"unable to resolve \"", STAGE_START, "srun cannot find hvdrun-agent: reinstall hvdrun"},
    {"node configuration is not available", STAGE_START,
     "Slurm does not give this node to the job: see NodeList in the output of scontrol show job"},
    {"invalid node name", STAGE_START,
     "Slurm has no node of this name: use the names that sinfo prints"},
    {"requested nodes are busy", STAGE_START,
     "another step of this job holds the nodes: this Slurm has no --overlap, or the other step "
     "was started with --exclusive"},
    {"step creation temporarily disabled", STAGE_START,
     "Slurm does not start new steps in this job now; another one may hold its nodes (squeue -s)"},
    {"expired or invalid job id", STAGE_START,
     "the Slurm job is over (squeue does not know it any more)"},
    {"invalid job id specified", STAGE_START,
     "the Slurm job is over (squeue does not know it any more)"},
    {"job/step already completing or completed", STAGE_START, "the Slurm job is ending"},
    {"job is pending execution", STAGE_START, "the Slurm job has not started yet"},
    {"memory required by task is not available", STAGE_START,
     "the job has no memory left for the agents: ask for more (--mem)"},
    {"unable to contact slurm controller", STAGE_START,
     "slurmctld does not answer: ask the administrator"},
    {"unable to confirm allocation", STAGE_START,
     "slurmctld does not answer: ask the administrator"},
    {"authentication", STAGE_START, "Slurm's authentication fails here: is munge running?"},
    {"munge", STAGE_START, "Slurm's authentication fails here: is munge running?"},
    {"communication connection failure", STAGE_START,
     "slurmd does not answer on the node: is it up?"},
    {"node failure on", STAGE_START, "Slurm reports that the node failed"},
    {"unrecognized option", STAGE_START, "srun does not know an option of --srun-args"},
    {"invalid option", STAGE_START, "srun does not know an option of --srun-args"},
    {"invalid argument", STAGE_START, "srun does not accept an option of --srun-args"},
    {0},
};

/* The first entry that is found in a line, in any case of letters, and that line. NULL: none is. */
static const struct complaint_rule *find(const struct complaint_rule *entry, const char *text,
                                         char *line, size_t room)
{
    for (; entry->says != NULL; entry++) {
        const char *where = strcasestr(text, entry->says);
        if (where == NULL)
            continue;
        while (where > text && where[-1] != '\n')
            where--;
        snprintf(line, room, "%.*s", (int)strcspn(where, "\n"), where);
        return entry;
    }
    return NULL;
}

bool exec_complaint_find(const char *text, bool is_ssh, struct exec_complaint *out)
{
    const struct complaint_rule *entry = find(of_all, text, out->line, sizeof(out->line));
    if (entry == NULL && is_ssh)
        entry = find(of_ssh, text, out->line, sizeof(out->line));
    if (entry == NULL)
        return false;
    out->stage = entry->stage;
    out->why = entry->why;
    return true;
}

const char *srun_complaint_find(const char *text, char *line, size_t room)
{
    const struct complaint_rule *entry = find(of_slurm, text, line, room);
    return entry == NULL ? NULL : entry->why;
}
