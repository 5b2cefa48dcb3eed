/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of the `ssh` program's template (for the exec transport), for a host that libssh2
 * cannot do. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"

struct ssh_program {
    const char *config_file; /* -F; NULL */
    const char *identity;    /* -i; NULL */
    const char *user;        /* -l; NULL: as configured */
    int port;                /* -p; 0: as configured */
    const char *check;       /* StrictHostKeyChecking; NULL: that of the template */
    int64_t silence_ms;      /* after which the connection is given up; 0: that of the template */
};

int ssh_program_words(const struct ssh_program *program, struct strv *words, struct error *err);
