/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the job says about SSH, and what follows for one host together with OpenSSH's configuration
 * of it. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/boot/room.h"
#include "transport/ssh/config.h"
#include "transport/ssh/program.h"
#include "transport/ssh/query.h"
#include "transport/transport.h"

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
