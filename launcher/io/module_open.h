/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a module of hvdrun, when a job or a command needs it (docs/design.md, D12). */
#pragma once

#include "base/error.h"

struct module_kind {
    const char *file, *symbol; /* "hvdrun-tls.so", and the table that it exports */
    int version;               /* of the table, which begins with an int of this value */
    const char *remedy;        /* if it cannot be loaded: "is OpenSSL 3 installed (libssl3)?" */
};

/* The table. It is never closed again, because not every library below it survives that. NULL:
 * `err` says why. */
const void *module_open(const char *path, const struct module_kind *kind, struct error *err);
