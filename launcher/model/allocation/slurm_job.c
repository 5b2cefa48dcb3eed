/* SPDX-License-Identifier: Apache-2.0 */
#include "model/allocation/slurm.h"

#include <string.h>

#include "base/parse.h"
#include "base/status.h"

#define SECONDS_MAX INT64_C(253402300799) /* the end of the year 9999 */

int64_t slurm_time_parse(const char *text, size_t length)
{
    char copy[32] = "";
    int64_t seconds = 0;
    if (length + 2 > sizeof(copy) || memchr(text, '\0', length) != NULL)
        return 0;
    memcpy(copy, text, length);
    if (strspn(copy, "0123456789") == length)
        return parse_int(copy, 0, SECONDS_MAX, &seconds, NULL) < 0 ? 0 : seconds;
    if (length != strlen("2026-11-21T10:39:00"))
        return 0; /* parse_utc() takes shorter forms, too */
    copy[length] = 'Z';
    return parse_utc(copy, &seconds) < 0 ? 0 : seconds;
}

/* The value of the word that begins with `name`, up to the next blank; NULL: there is none. */
static const char *find(const char *line, size_t line_length, const char *name, size_t *length)
{
    size_t wanted = strlen(name);
    for (size_t i = 0; i + wanted <= line_length; i++) {
        bool begins = i == 0 || line[i - 1] == ' ';
        if (!begins || memcmp(line + i, name, wanted) != 0)
            continue;
        const char *value = line + i + wanted;
        size_t rest = line_length - i - wanted;
        const char *blank = memchr(value, ' ', rest);
        *length = blank == NULL ? rest : (size_t)(blank - value);
        return value;
    }
    return NULL;
}

static int64_t find_time(const char *line, size_t line_length, const char *name)
{
    size_t length = 0;
    const char *value = find(line, line_length, name, &length);
    return value == NULL ? 0 : slurm_time_parse(value, length);
}

static bool find_flag(const char *line, size_t line_length, const char *name)
{
    size_t length = 0;
    const char *value = find(line, line_length, name, &length);
    return value == NULL || length != 1 || value[0] != '0'; /* not said: it is tried */
}

/* -1: it is not there, or empty, or too long. */
static int find_word(const char *line, size_t line_length, const char *name, char out[32])
{
    size_t length = 0;
    const char *value = find(line, line_length, name, &length);
    if (value == NULL || length == 0 || length >= 32)
        return -1;
    memcpy(out, value, length);
    out[length] = '\0';
    return 0;
}

int slurm_job_parse(const char *bytes, size_t length, struct slurm_job *out, struct error *err)
{
    *out = (struct slurm_job){.end_s = 0};
    const char *newline = memchr(bytes, '\n', length);
    size_t line = newline == NULL ? length : (size_t)(newline - bytes);
    if (find_word(bytes, line, "JobState=", out->state) < 0)
        return error_status(
            err, STATUS_LAUNCHER,
            "the output of scontrol does not show the state of the job; expected JobState=...");
    (void)find_word(bytes, line, "Reason=", out->reason);
    out->end_s = find_time(bytes, line, "EndTime=");
    out->preempted = find_time(bytes, line, "PreemptTime=") != 0;
    out->batch = find_flag(bytes, line, "BatchFlag=");
    out->requeue = find_flag(bytes, line, "Requeue=");
    return 0;
}

static bool is_one_of(const char *word, const char *const *list)
{
    while (*list != NULL && strcmp(*list, word) != 0)
        list++;
    return *list != NULL;
}

bool slurm_job_runs(const struct slurm_job *job)
{
    static const char *const states[] = {"RUNNING", "SIGNALING", NULL};
    return is_one_of(job->state, states);
}

bool slurm_job_is_ousted(const struct slurm_job *job)
{
    static const char *const states[] = {"TIMEOUT", "DEADLINE", "PREEMPTED", "NODE_FAIL", NULL};
    static const char *const reasons[] = {"TimeLimit", "DeadLine", "NodeDown", NULL};
    bool ends = strcmp(job->state, "COMPLETING") == 0;
    return is_one_of(job->state, states) || (ends && is_one_of(job->reason, reasons)) ||
           (job->preempted && (slurm_job_runs(job) || ends));
}
