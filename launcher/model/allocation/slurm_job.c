/* SPDX-License-Identifier: Apache-2.0 */
#include "model/allocation/slurm.h"

#include <string.h>

#include "base/status.h"

#define DAY_S INT64_C(86400)
#define SECONDS_MAX INT64_C(253402300799) /* the end of the year 9999 */

/* Reads exactly `digits` of them at `*at`. */
static bool read_number(const char **at, const char *end, int digits, int64_t *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++, (*at)++) {
        if (*at == end || **at < '0' || **at > '9')
            return false;
        *out = *out * 10 + (**at - '0');
    }
    return true;
}

static bool read_mark(const char **at, const char *end, char mark)
{
    if (*at == end || **at != mark)
        return false;
    (*at)++;
    return true;
}

/* Days since 1970-01-01 of a date in the Gregorian calendar; months count from March here, so that
 * the leap day is the last one of a year. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static int64_t seconds_of_digits(const char *text, size_t length)
{
    int64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || value > SECONDS_MAX)
            return 0;
        value = value * 10 + (text[i] - '0');
    }
    return value <= SECONDS_MAX ? value : 0;
}

int64_t slurm_time_parse(const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    int64_t year, month, day, hour, minute, second;
    bool right = read_number(&at, end, 4, &year) && read_mark(&at, end, '-') &&
                 read_number(&at, end, 2, &month) && read_mark(&at, end, '-') &&
                 read_number(&at, end, 2, &day) && read_mark(&at, end, 'T') &&
                 read_number(&at, end, 2, &hour) && read_mark(&at, end, ':') &&
                 read_number(&at, end, 2, &minute) && read_mark(&at, end, ':') &&
                 read_number(&at, end, 2, &second) && at == end;
    if (!right)
        return seconds_of_digits(text, length);
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 ||
        second > 60)
        return 0;
    return days_of(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second;
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
