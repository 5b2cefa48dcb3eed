/* SPDX-License-Identifier: Apache-2.0 */
/* A script that is a program, since its first line names Python: "#!/usr/bin/env python3". */
#pragma once

#include "base/strv.h"
#include "io/child.h"

struct warm_script {
    char *path;
    struct strv argv;
};

/* What the system, and env, make of a program and its arguments: an interpreter (resolved) and its
 * arguments. False, and nothing to destroy: it is no such script, or its first line is not plain.
 */
bool warm_script_read(const struct child_spec *spec, struct warm_script *out);
void warm_script_destroy(struct warm_script *script);
