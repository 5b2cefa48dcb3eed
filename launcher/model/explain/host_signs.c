/* SPDX-License-Identifier: Apache-2.0 */
#include "model/explain/host_signs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/explain/gpu_signs.h"

/* Lines of the kernel that are about a process or the hardware. */
static const char *const kernel_words[] = {
    "Out of memory", "out of memory",  "oom-kill",  "segfault at",           "Hardware Error",
    "soft lockup",   "not responding", "I/O error", "blocked for more than",
};

/* The end of a line that begins with these words. NULL: there is none. */
static const char *after(const char *text, const char *words)
{
    size_t length = strlen(words);
    while (text != NULL && *text != '\0') {
        if (strncmp(text, words, length) == 0)
            return text + length;
        text = strchr(text, '\n');
        text = text == NULL ? NULL : text + 1;
    }
    return NULL;
}

long host_signs_memory_kills(const struct explain_host *host)
{
    const char *count = after(host->memory, "cgroup oom_kill ");
    return count == NULL ? 0 : strtol(count, NULL, 10);
}

char *host_signs_full_folder(const struct explain_host *host)
{
    for (const char *line = host->folders; line != NULL && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char *copy AUTO_FREE = mem_strndup(line, length);
        const char *colon = strstr(copy, ": ");
        if (colon != NULL && strstr(copy, "it is full") != NULL)
            return mem_strndup(copy, (size_t)(colon - copy));
        line += length + (line[length] == '\n');
    }
    return NULL;
}

static double memory_pressure(const struct explain_host *host)
{
    const char *value = after(host->pressure, "memory full avg10=");
    return value == NULL ? 0 : strtod(value, NULL);
}

static bool is_old(const char *line, double since_s)
{
    return line[0] == '[' && strtod(line + 1, NULL) < since_s;
}

static bool has_number(const char *text, const char *number)
{
    size_t length = strlen(number);
    for (const char *at = text; (at = strstr(at, number)) != NULL; at += length) {
        bool begins = at == text || !isdigit((unsigned char)at[-1]);
        if (begins && !isdigit((unsigned char)at[length]))
            return true;
    }
    return false;
}

/* "[101.5] python3[2091]: segfault at ...": is it a rank, or a process that the rank names in its
 * output? Other programs of the host crash, too. */
static bool may_be_ours(const char *line, const struct explain_facts *facts,
                        const struct explain_host *host)
{
    char *copy AUTO_FREE = mem_strdup(line);
    char *end = strstr(copy, "]: segfault at");
    if (end == NULL)
        return true;
    *end = '\0';
    const char *begin = strrchr(copy, '['), *pid = begin == NULL ? "" : begin + 1;
    for (size_t i = 0; i < facts->rank_count; i++) {
        const struct explain_rank *rank = &facts->ranks[i];
        if (rank->pid == strtol(pid, NULL, 10) && strcmp(rank->host, host->host) == 0)
            return true;
    }
    return pid[0] != '\0' && facts->said != NULL && has_number(facts->said, pid);
}

/* The last line with one of the words. The caller frees it. NULL: none. */
static char *kernel_line(const struct explain_facts *facts, const struct explain_host *host)
{
    char *last = NULL;
    for (const char *line = host->kernel; line != NULL && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char *copy = mem_strndup(line, length);
        bool wanted = false;
        for (size_t i = 0; i < sizeof(kernel_words) / sizeof(kernel_words[0]); i++)
            wanted = wanted || strstr(copy, kernel_words[i]) != NULL;
        wanted = wanted && !is_old(copy, facts->started_s) && may_be_ours(copy, facts, host);
        char *other = wanted ? last : copy;
        last = wanted ? copy : last;
        free(other);
        line += length + (line[length] == '\n');
    }
    return last;
}

struct listener {
    const char *host;
    void (*each)(void *context, const char *host, const char *text);
    void *context;
};

static void take_gpu(void *context, const char *text)
{
    const struct listener *listener = context;
    listener->each(listener->context, listener->host, text);
}

void host_signs(const struct explain_facts *facts, const struct explain_host *host,
                void (*each)(void *context, const char *host, const char *text), void *context)
{
    long kills = host_signs_memory_kills(host);
    double pressure = memory_pressure(host);
    char *full AUTO_FREE = host_signs_full_folder(host), *line AUTO_FREE = kernel_line(facts, host);
    char *text AUTO_FREE = NULL;
    if (host->lost)
        each(context, host->host, "the host was lost");
    else if (host->lost_later)
        each(context, host->host, "its agent was lost, too");
    else if (host->silent)
        each(context, host->host, "its agent did not answer");
    if (kills > 0) {
        text = mem_printf("the kernel has killed %ld process%s of its cgroup for lack of memory",
                          kills, kills == 1 ? "" : "es");
        each(context, host->host, text);
    }
    struct listener listener = {host->host, each, context};
    gpu_signs(host, facts->started_s, take_gpu, &listener);
    if (pressure > HOST_SIGN_PRESSURE) {
        free(text);
        text = mem_printf("all tasks waited for memory during %.0f %% of 10 s", pressure);
        each(context, host->host, text);
    }
    if (full != NULL) {
        free(text);
        text = mem_printf("%s is full", full);
        each(context, host->host, text);
    }
    if (line != NULL) {
        free(text);
        text = mem_printf("its kernel: %s", line);
        each(context, host->host, text);
    }
}
