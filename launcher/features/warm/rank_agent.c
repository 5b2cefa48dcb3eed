/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/warm_agent.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "features/warm/holder.h"
#include "io/child.h"

#define SPARE_FILES 32 /* that the agent may need for other things */

static void copy_arrays(struct warm_rank *rank)
{
    struct child_spec *spec = &rank->spec;
    strv_copy(&rank->argv, spec->argv);
    strv_copy(&rank->envp, spec->envp);
    spec->argv = strv_items(&rank->argv);
    spec->envp = strv_items(&rank->envp);
    spec->path = mem_strdup(spec->path);
    spec->wdir = mem_strdup(spec->wdir);
    if (spec->cpus != NULL)
        spec->cpus = mem_dup(spec->cpus, spec->cpus_size);
    spec->limits = spec->limit_count > 0
                       ? mem_dup(spec->limits, spec->limit_count * sizeof(*spec->limits))
                       : NULL;
}

static int copy_descriptors(struct warm_rank *rank)
{
    struct rlimit limit;
    bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    int fds[4] = {rank->spec.fds[0], rank->spec.fds[1], rank->spec.fds[2], rank->spec.keep_fd};
    for (int i = 0; i < 4 && fds[i] >= 0; i++) {
        rank->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        bool room = !known || (rlim_t)rank->fds[i] + SPARE_FILES < limit.rlim_cur;
        if (rank->fds[i] < 0 || !room)
            return -1;
    }
    memcpy(rank->spec.fds, rank->fds, sizeof(rank->spec.fds));
    rank->spec.keep_as = rank->spec.keep_fd < 0 ? 0 : rank->spec.keep_fd;
    rank->spec.keep_fd = rank->fds[3];
    return 0;
}

/* The system calls a script by its own name, unless env has started the interpreter. */
static char *name_of(const struct child_spec *spec, char *const *words)
{
    bool is_script = words != spec->argv && words[0][0] == '/';
    return is_script ? mem_strdup(text_base_name(spec->path)) : NULL;
}

struct warm_rank *warm_rank_create(const struct child_spec *spec, char *const *words, size_t skip)
{
    struct warm_rank *rank =
        MEM_NEW((struct warm_rank){.spec = *spec, .skip = skip, .fds = {-1, -1, -1, -1}});
    strv_copy(&rank->words, words);
    rank->name = name_of(spec, words);
    copy_arrays(rank);
    if (copy_descriptors(rank) == 0)
        return rank;
    warm_rank_destroy(rank);
    return NULL;
}

void warm_rank_destroy(struct warm_rank *rank)
{
    if (rank == NULL)
        return;
    for (int i = 0; i < 4; i++)
        fd_close(&rank->fds[i]);
    free((char *)rank->spec.path);
    free((char *)rank->spec.wdir);
    free((cpu_set_t *)rank->spec.cpus);
    free((struct child_limit *)rank->spec.limits);
    strv_destroy(&rank->argv);
    strv_destroy(&rank->envp);
    strv_destroy(&rank->words);
    free(rank->name);
    free(rank);
}

static void put_cpus(struct buf *out, const struct child_spec *spec)
{
    size_t count = spec->cpus == NULL ? 0 : spec->cpus_size * 8;
    for (size_t i = 0; i < count; i++) {
        if (CPU_ISSET_S(i, spec->cpus_size, spec->cpus))
            buf_printf(out, "%zu,", i);
    }
    buf_putc(out, '\0');
}

void warm_rank_write(const struct warm_rank *rank, struct buf *out)
{
    const struct child_spec *spec = &rank->spec;
    put_cpus(out, spec);
    fields_put_number(out, (uint64_t)spec->keep_as);
    fields_put(out, spec->controlling_terminal ? "1" : "0");
    fields_put(out, rank->name == NULL ? "" : rank->name);
    fields_put_number(out, spec->limit_count);
    for (size_t i = 0; i < spec->limit_count; i++) {
        fields_put_number(out, (uint64_t)spec->limits[i].resource);
        fields_put_number(out, (uint64_t)spec->limits[i].soft);
    }
    fields_put_number(out, rank->skip);
    fields_put_list(out, &rank->words);
    fields_put_list(out, &rank->envp);
}

void warm_rank_start(struct warm_rank *rank)
{
    struct error err = ERROR_INIT;
    pid_t pid = -1;
    if (!rank->cancelled) {
        pid = child_spawn(&rank->spec, NULL, &err);
        rank->done(rank->context, pid, &err);
    }
    warm_rank_destroy(rank);
}

/* A script that names its interpreter. */

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
    if (strcmp(text_base_name(line), "env") != 0) {
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
