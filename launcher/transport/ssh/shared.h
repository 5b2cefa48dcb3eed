/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calls of the ssh transport share: the settings, the window that they go through, and
 * what is opened once for all of them. The SSH module and the keys are opened with the first
 * connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "transport/resolve.h"
#include "transport/ssh/config.h"
#include "transport/ssh/query.h"
#include "transport/ssh/window.h"
#include "transport/ssh_module/ssh_module.h"
#include "transport/transport.h"

struct ssh_program {
    const char *config_file; /* -F; NULL */
    const char *identity;    /* -i; NULL */
    const char *user;        /* -l; NULL: as configured */
    int port;                /* -p; 0: as configured */
    const char *check;       /* StrictHostKeyChecking; NULL: that of the template */
    int64_t silence_ms;      /* after which the connection is given up; 0: that of the template */
};
int ssh_program_words(const struct ssh_program *program, struct strv *words, struct error *err);

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
enum ssh_host_policy ssh_settings_policy(const struct ssh_settings *settings,
                                         const struct ssh_config *config);

/* What makes hvdrun refuse unknown keys, and how to change it: an option, the configuration, or
 * both. The caller owns it. */
char *ssh_settings_strict_remedy(const struct ssh_settings *settings,
                                 const struct ssh_config *config);

/* After how many ms of silence a connection is given up. */
int64_t ssh_settings_silence_ms(const struct ssh_settings *settings);

/* The host's entry in the host list counts more than the options. All is borrowed from both. */
struct ssh_wanted ssh_settings_wanted(const struct ssh_settings *settings,
                                      const struct transport_target *host);

/* For the ssh program. All is borrowed from the arguments. */
struct ssh_program ssh_settings_program(const struct ssh_settings *settings,
                                        const struct ssh_config *config,
                                        const struct ssh_wanted *wanted);

struct ssh_identities;

struct ssh_identity {
    struct ssh_keys *keys; /* NULL: `why` says why */
    const char *why;
    const struct strv *notes; /* for the first call that asks for this set; else NULL */
};

/* The keys for a host with this configuration. They live as long as the identities. Reads the files
 * and asks the agent when the set is new. */
struct ssh_identity ssh_identities_find(struct ssh_identities *identities,
                                        const struct ssh_config *config);

struct ssh_shared {
    const struct ssh_settings *settings;
    struct loop *loop;
    struct ssh_window *window;
    struct ssh_queries *queries;
    struct resolver *resolver;       /* from the first call on */
    char *why_not;                   /* no resolver or no module: the ssh program does all hosts */
    const struct ssh_module *module; /* from the first connection on */
    struct ssh_known_files *known_files; /* with the module */
    struct ssh_identities *identities;   /* likewise */
    struct ssh_query_settings query_settings;
    struct loop_timer *turn; /* lets calls in, from the loop */
    struct loop_timer *idle; /* does what can be done while servers are waited for */
};

/* `turn` comes from the loop, with `context`, a turn after ssh_shared_schedule(). */
struct ssh_shared *ssh_shared_create(const struct ssh_settings *settings,
                                     void (*turn)(void *context), void *context);
void ssh_shared_destroy(struct ssh_shared *shared); /* after the calls; accepts NULL */

/* Lets calls in that may go, a turn later. */
void ssh_shared_schedule(struct ssh_shared *shared);

/* Opens the resolver, once. Where that fails, `why_not` says why. */
void ssh_shared_open_resolver(struct ssh_shared *shared);

/* Opens the module, once. NULL: it is there; else why not. */
const char *ssh_shared_open_module(struct ssh_shared *shared);

/* A server was just sent something: what can be done before it answers is done a turn later. */
void ssh_shared_idle(struct ssh_shared *shared);
