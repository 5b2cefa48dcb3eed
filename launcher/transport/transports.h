/* SPDX-License-Identifier: Apache-2.0 */
/* The transports to other hosts, as the driver opens them. Each is a file in a folder of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/strv.h"
#include "transport/transport.h"

/*
 * ssh.c: the ssh transport: one connection per host through libssh2, many at once under a window,
 * all in one loop. libssh2 is in a module of its own, hvdrun-ssh.so, which the first call opens.
 * The `ssh` program does what libssh2 cannot do right, for that host, and a note says so.
 * docs/transports.md has the rules.
 */

struct ssh_settings {
    const struct transport_room *room;
    const char *module_path; /* of hvdrun-ssh.so */
    int window;              /* calls at the same time; a tenth of it or at least 8 per server */
    const char *config_file; /* --ssh-config, as ssh -F; NULL: the user's and the system's */
    const char *user;        /* --ssh-user; NULL */
    int port;                /* --ssh-port; 0 */
    const char *identity;    /* --ssh-identity-file; NULL */
    bool strict;             /* --ssh-strict: unknown host keys are refused */
    bool program_only;       /* --transport ssh-cli: the ssh program does every host */
};

struct ssh_transport;

/* The settings are borrowed. Costs nothing before the first call. */
struct ssh_transport *ssh_transport_create(const struct ssh_settings *settings);
void ssh_transport_destroy(struct ssh_transport *ssh); /* after the last hang_up; accepts NULL */
struct transport ssh_transport(struct ssh_transport *ssh);

/*
 * srun.c: the srun transport: Slurm starts the agents, they dial back (transport/dial_back.h).
 *
 * One srun (transport/srun/step.h) serves all calls of one turn, so hundreds of nodes cost as much
 * as one. With `one_each` every node has an srun of its own, so that a dead node does not take live
 * ones along. `srun --help` is asked once, before the first step, for what this site's srun can do.
 */

struct srun_settings {
    const struct transport_room *room;
    const char *module_path; /* of hvdrun-tls.so */
    const char *agent_path;  /* of hvdrun-agent, on the nodes as here */
    const char *arguments;   /* --srun-args; NULL */
    char *const *addresses;  /* numeric, of this machine, best first; NULL-ended */
    int64_t limit_ms;        /* for an agent to come, from its call */
    int nodes;               /* that may come at the same time */
    bool one_each;
    /* A line that belongs to no call: refused connections, what srun says of all nodes. */
    void (*note)(void *context, enum log_level level, const char *line);
    /* From the loop: no srun runs any more, see srun_transport_is_idle(). */
    void (*idle)(void *context);
    void *context;
};

struct srun_transport;

/* The settings are borrowed. NULL: no TLS, no port, or --srun-args that cannot be split. */
struct srun_transport *srun_transport_create(const struct srun_settings *settings,
                                             struct error *err);
void srun_transport_destroy(struct srun_transport *srun); /* after the last hang_up */
struct transport srun_transport(struct srun_transport *srun);

/* Every srun has ended, or was given up. One whose calls are hung up ends on its own with its
 * agents, is asked to after SRUN_LINGER_MS, and is given up after SRUN_PATIENCE_MS more. */
bool srun_transport_is_idle(const struct srun_transport *srun);

/*
 * dial_in.c: the transport `dial`: agents that somebody else starts, such as Kubernetes, dial in to
 * a port that they know (transport/dial_back.h). A call waits for the agent of its host.
 *
 *   call -> its agent has come                 up
 *        -> limit_ms has passed                failed (a job with a fixed set of hosts)
 */

struct dial_in_settings {
    const struct transport_room *room;
    const char *module_path; /* of hvdrun-tls.so */
    const char *secret_file; /* NULL: whoever knows the id comes in */
    const char *id;          /* of the run */
    int port;
    int64_t limit_ms; /* for an agent to come, from its call; 0: agents come and go */
    int nodes;        /* that may come at the same time, as far as they are known */
    /* As in dial_back.h: hosts that are in no list. May be NULL. */
    const char *(*stranger)(void *context, const char *name);
    /* A line that belongs to no call: refused connections. */
    void (*note)(void *context, enum log_level level, const char *line);
    void *context;
};

struct dial_in;

/* The settings are borrowed. NULL: no TLS, no such secret, or the port is not free. */
struct dial_in *dial_in_create(const struct dial_in_settings *settings, struct error *err);
void dial_in_destroy(struct dial_in *in); /* after the last hang_up; accepts NULL */
struct transport dial_in_transport(struct dial_in *in);

/*
 * exec.c: the exec transport: a command that gives a duplex pipe to a shell on the host.
 *
 * Its words come from a template (transport/exec/words.h). Calls begin in their order, so many
 * at the same time.
 */

struct exec_transport {
    const struct transport_room *room;
    struct strv words;     /* the template's */
    const char *boot_word; /* BOOT_COMMAND; NULL: the command is the agent itself */
    int window;            /* calls at the same time; 0: no limit */
    bool same_machine;     /* local_exec */
    bool is_ssh;           /* stderr is that of OpenSSH: its complaints are translated */
    /* Private: the calls that wait, and how many are under way. */
    TAILQ_HEAD(, exec_call) queue;
    int running;
    struct loop_timer *turn; /* calls begin from the loop; NULL: there was none */
};

struct transport exec_transport(struct exec_transport *exec); /* borrows it */
void exec_transport_close(struct exec_transport *exec);       /* after the last hang_up */
