/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/command.h"

#include <stdbool.h>
#include <string.h>

static bool is_python(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    if (strncmp(name, "python", 6) != 0)
        return false;
    name += 6;
    name += strspn(name, "0123456789.");
    name += strspn(name, "td"); /* free-threaded, for debugging */
    return *name == '\0';
}

/* How many arguments an option of the interpreter takes, itself too; 0: it is none that a mother
 * could have. */
static size_t option_length(const char *option, const char *next)
{
    const char *at = option + 1 + strspn(option + 1, "bBdEIOPqRsSuv");
    if (*at == '\0')
        return 1;
    if (*at != 'W' && *at != 'X')
        return 0;
    if (at[1] != '\0')
        return 1;
    return next == NULL ? 0 : 2;
}

static const char *read_target(char *const *argv, struct warm_command *out)
{
    const char *word = argv[out->options];
    if (word[0] != '-') {
        out->kind = 's';
        out->target = word;
        out->rest = out->options + 1;
        return NULL;
    }
    out->kind = word[1];
    out->target = word[2] != '\0' ? word + 2 : argv[out->options + 1];
    out->rest = out->options + (word[2] != '\0' ? 1 : 2);
    return out->target == NULL ? "an option of Python has no value" : NULL;
}

const char *warm_command_read(const char *path, char *const *argv, struct warm_command *out)
{
    if (!is_python(path))
        return "only 'python3 ...', and a script that begins like '#!/usr/bin/env python3', can be "
               "warm";
    for (out->options = 1; argv[out->options] != NULL;) {
        const char *word = argv[out->options];
        if (word[0] != '-' || word[1] == 'm' || word[1] == 'c')
            return read_target(argv, out);
        size_t length = word[1] == '\0' ? 0 : option_length(word, argv[out->options + 1]);
        if (length == 0)
            return "a program from stdin, and some options of Python, cannot be warm";
        out->options += length;
    }
    return "a Python without a script cannot be warm";
}
