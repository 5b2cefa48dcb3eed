/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/script_agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "features/warm/kind.h"
#include "io/interpreter.h"

static bool is_env(const char *path)
{
    static const char end[] = "/env";
    size_t length = strlen(path);
    return length >= strlen(end) && strcmp(path + length - strlen(end), end) == 0;
}

/* The interpreter, and the first words of its command line. NULL: the line is not plain. */
static char *read_line(char *line, const struct child_spec *spec, struct strv *argv)
{
    char *option = line + strcspn(line, " \t"); /* the system makes one word of the rest */
    if (*option != '\0') {
        *option++ = '\0';
        option += strspn(option, " \t");
    }
    if (line[0] != '/' || strpbrk(option, " \t=\r") != NULL)
        return NULL;
    if (!is_env(line)) {
        strv_add(argv, line);
        if (*option != '\0')
            strv_add(argv, option);
        return mem_strdup(line);
    }
    strv_add(argv, option);
    struct strv envp = {.items = (char **)spec->envp};
    while (envp.items[envp.count] != NULL)
        envp.count++;
    return child_find(option, strv_env_get(&envp, "PATH"), spec->wdir, NULL);
}

bool warm_script_read(const struct child_spec *spec, struct warm_script *out)
{
    struct warm_command command;
    *out = (struct warm_script){0};
    char *line AUTO_FREE = interpreter_line(spec->path);
    if (line == NULL)
        return false;
    out->path = read_line(line, spec, &out->argv);
    strv_add(&out->argv, spec->path);
    for (size_t i = 1; spec->argv[0] != NULL && spec->argv[i] != NULL; i++)
        strv_add(&out->argv, spec->argv[i]);
    bool plain = out->path != NULL &&
                 warm_command_read(out->path, strv_items(&out->argv), &command) == NULL &&
                 command.kind == 's';
    if (!plain)
        warm_script_destroy(out);
    return plain;
}

void warm_script_destroy(struct warm_script *script)
{
    free(script->path);
    strv_destroy(&script->argv);
}
