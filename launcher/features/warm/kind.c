/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/kind.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "model/env/rank_variables.h"

/* GNU and Intel OpenMP bind the interpreter's thread, and choose places for good, when they are
 * loaded. An interpreter that goes on at a prompt has no end that a rank could have. */
static const char *const unfit[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                    "KMP_AFFINITY", "PYTHONINSPECT"};

/* Each shell has others. */
static const char *const of_shells[] = {
    "_", "OLDPWD", "SHLVL", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "WINDOWID", "SSH_AUTH_SOCK"};
#define OF_SHELLS (sizeof(of_shells) / sizeof(of_shells[0]))

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count && !found; i++)
        found = strcmp(name, names[i]) == 0;
    return found;
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), wanted = strlen(end);
    return length >= wanted && strcmp(name + length - wanted, end) == 0;
}

/* Neither the interpreter nor what is imported usually reads it; if something does, it is not
 * imported before the fork (mother.py, watch_environment). */
static bool is_of_ranks(const char *name)
{
    static const char *const whole[] = {"MASTER_ADDR", "MASTER_PORT", "JAX_COORDINATOR_ADDRESS",
                                        "NCCL_IB_HCA", "UCX_NET_DEVICES"};
    return is_one_of(name, whole, sizeof(whole) / sizeof(whole[0])) ||
           is_one_of(name, of_shells, OF_SHELLS) || ends_with(name, "_VISIBLE_DEVICES") ||
           rank_variable_find(name, strlen(name)) != NULL || env_differs_by_rank(name);
}

static const char *read_environment(char *const *envp, struct warm_kind *out)
{
    for (; *envp != NULL; envp++) {
        char *name AUTO_FREE = mem_strndup(*envp, strcspn(*envp, "="));
        if (is_one_of(name, unfit, sizeof(unfit) / sizeof(unfit[0])))
            return "OMP_PROC_BIND, OMP_PLACES, an affinity of OpenMP or PYTHONINSPECT is set";
        if (is_of_ranks(name))
            strv_add(&out->names, name);
        else
            strv_add(&out->env, *envp);
    }
    for (size_t i = 0; i < OF_SHELLS; i++) /* a later job may have them */
        strv_add(&out->names, of_shells[i]);
    return NULL;
}

const char *warm_kind_read(const struct child_spec *spec, const struct warm_command *command,
                           struct warm_kind *out)
{
    *out = (struct warm_kind){.path = mem_strdup(spec->path), .command = command->kind};
    for (size_t i = 0; i < command->options; i++)
        strv_add(&out->interpreter, spec->argv[i]);
    out->target = mem_strdup(command->target);
    out->wdir = mem_strdup(spec->wdir);
    const char *problem = read_environment(spec->envp, out);
    if (problem != NULL)
        warm_kind_destroy(out);
    return problem;
}

static bool is_same_environment(const struct warm_kind *kind, char *const *envp)
{
    size_t i = 0;
    for (; *envp != NULL; envp++) {
        if (i < kind->env.count && strcmp(kind->env.items[i], *envp) == 0) {
            i++;
            continue;
        }
        char *name AUTO_FREE = mem_strndup(*envp, strcspn(*envp, "="));
        if (!is_of_ranks(name))
            return false;
    }
    return i == kind->env.count;
}

bool warm_kind_is(const struct warm_kind *kind, const struct child_spec *spec,
                  const struct warm_command *command)
{
    bool same = strcmp(kind->path, spec->path) == 0 && kind->command == command->kind &&
                strcmp(kind->target, command->target) == 0 && text_same(kind->wdir, spec->wdir) &&
                kind->interpreter.count == command->options;
    for (size_t i = 0; same && i < command->options; i++)
        same = strcmp(kind->interpreter.items[i], spec->argv[i]) == 0;
    return same && is_same_environment(kind, spec->envp);
}

bool warm_kind_knows(const struct warm_kind *kind, const struct child_spec *spec)
{
    bool known = true;
    for (char *const *pair = spec->envp; *pair != NULL && known; pair++) {
        char *name AUTO_FREE = mem_strndup(*pair, strcspn(*pair, "="));
        known = !is_of_ranks(name) ||
                is_one_of(name, (const char *const *)kind->names.items, kind->names.count);
    }
    return known;
}

void warm_kind_write(const struct warm_kind *kind, struct buf *out)
{
    fields_put(out, kind->path);
    fields_put_list(out, &kind->interpreter);
    fields_put_number(out, (uint64_t)(unsigned char)kind->command);
    fields_put(out, kind->target);
    fields_put(out, kind->wdir == NULL ? "" : kind->wdir);
    fields_put_list(out, &kind->env);
    fields_put_list(out, &kind->names);
}

void warm_kind_take(struct field_reader *fields, struct warm_kind *out)
{
    *out = (struct warm_kind){.path = mem_strdup(fields_next(fields))};
    fields_next_list(fields, &out->interpreter);
    out->command = (char)fields_next_number(fields);
    out->target = mem_strdup(fields_next(fields));
    const char *wdir = fields_next(fields);
    out->wdir = wdir[0] == '\0' ? NULL : mem_strdup(wdir);
    fields_next_list(fields, &out->env);
    fields_next_list(fields, &out->names);
}

void warm_kind_destroy(struct warm_kind *kind)
{
    free(kind->path);
    free(kind->target);
    free(kind->wdir);
    strv_destroy(&kind->interpreter);
    strv_destroy(&kind->env);
    strv_destroy(&kind->names);
}

static bool is_python(const char *path)
{
    const char *name = text_base_name(path);
    if (!text_begins(name, "python"))
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
