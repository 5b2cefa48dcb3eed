/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/python_line.h"

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

/* How many arguments an option of the interpreter takes, itself too; 0: it is not known. */
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

static enum python_line_state read_target(char *const *argv, struct python_line *out)
{
    const char *word = argv[out->options];
    if (word[0] != '-') {
        out->kind = 's';
        out->target = word;
        out->rest = out->options + 1;
        return PYTHON_LINE_READ;
    }
    out->kind = word[1];
    out->target = word[2] != '\0' ? word + 2 : argv[out->options + 1];
    out->rest = out->options + (word[2] != '\0' ? 1 : 2);
    return out->target == NULL ? PYTHON_LINE_NO_VALUE : PYTHON_LINE_READ;
}

enum python_line_state python_line_read(const char *path, char *const *argv,
                                        struct python_line *out)
{
    if (!is_python(path))
        return PYTHON_LINE_OTHER_PROGRAM;
    for (out->options = 1; argv[out->options] != NULL;) {
        const char *word = argv[out->options];
        if (word[0] != '-' || word[1] == 'm' || word[1] == 'c')
            return read_target(argv, out);
        size_t length = word[1] == '\0' ? 0 : option_length(word, argv[out->options + 1]);
        if (length == 0)
            return PYTHON_LINE_OTHER_OPTIONS;
        out->options += length;
    }
    return PYTHON_LINE_NO_TARGET;
}
