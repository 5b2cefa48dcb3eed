/* SPDX-License-Identifier: Apache-2.0 */
#include "model/usage/proc_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define DIGITS_MAX 19 /* so many always fit into 64 bits */

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* The digits at `*at`, which moves behind them. */
static int take_digits(const char **at, uint64_t *out)
{
    uint64_t value = 0;
    int count = 0;
    for (; is_digit(**at); (*at)++, count++) {
        if (count == DIGITS_MAX)
            return -1;
        value = value * 10 + (uint64_t)(**at - '0');
    }
    *out = value;
    return count > 0 ? 0 : -1;
}

/* strtod(3) would obey the locale of the process. */
static int take_decimal(const char **at, double *out)
{
    uint64_t whole, rest = 0;
    if (take_digits(at, &whole) < 0)
        return -1;
    double scale = 1;
    if (**at == '.') {
        const char *begin = ++*at;
        if (take_digits(at, &rest) < 0)
            return -1;
        for (; begin < *at; begin++)
            scale *= 10;
    }
    *out = (double)whole + (double)rest / scale;
    return 0;
}

/* What follows `key` and blanks at the beginning of a line. NULL: there is no such line. */
static const char *after_key(const char *text, const char *key)
{
    const char *value = text_line_after(text, key);
    return value == NULL ? NULL : value + strspn(value, " \t");
}

static int read_key(const char *text, const char *key, uint64_t *out)
{
    const char *at = after_key(text, key);
    return at == NULL ? -1 : take_digits(&at, out);
}

/* The fields that we want, by their number in proc(5). */
enum {
    PARENT = 4,
    SESSION = 6,
    FLAGS = 9,
    FAULTS = 10,
    CHILD_FAULTS,
    CPU_FIRST = 14,
    CPU_LAST = 17,
    THREADS = 20,
    START = 22,
    RSS = 24
};

/* The name in parentheses may hold anything, also ')' and newlines. */
int proc_stat_read(const char *text, struct proc_stat *out)
{
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ' || at[2] == '\0' || at[3] != ' ')
        return -1;
    uint64_t fields[RSS + 1] = {0}, code = 0;
    char state = at[2];
    at += 4;
    for (int field = PARENT; field <= RSS; field++) {
        bool negative = *at == '-'; /* the terminal, and priorities: none of ours */
        at += negative;
        if (take_digits(&at, &fields[field]) < 0 || (*at != ' ' && field < RSS))
            return -1;
        if (negative)
            fields[field] = 0;
        at += *at == ' ';
    }
    const char *last = strrchr(at, ' ');
    at = last != NULL ? last + 1 : "";
    *out = (struct proc_stat){.parent = (int64_t)fields[PARENT],
                              .session = (int64_t)fields[SESSION],
                              .flags = fields[FLAGS],
                              .start_ticks = fields[START],
                              .threads = fields[THREADS],
                              .resident_pages = fields[RSS],
                              .faults = fields[FAULTS] + fields[CHILD_FAULTS],
                              .code = take_digits(&at, &code) == 0 ? (int64_t)code : 0,
                              .state = state};
    for (int field = CPU_FIRST; field <= CPU_LAST; field++)
        out->cpu_ticks += fields[field];
    return 0;
}

int proc_waits_read(const char *text, uint64_t *out)
{
    return read_key(text, "voluntary_ctxt_switches:", out);
}

static int take_hex(const char **at, uint64_t *out)
{
    uint64_t value = 0;
    int digits = 0;
    for (; is_digit(**at) || (**at >= 'a' && **at <= 'f'); (*at)++, digits++) {
        if (digits == 16)
            return -1;
        value = value << 4 | (uint64_t)(is_digit(**at) ? **at - '0' : **at - 'a' + 10);
    }
    *out = value;
    return digits > 0 ? 0 : -1;
}

static int read_mask(const char *text, const char *key, uint64_t *out)
{
    const char *at = after_key(text, key);
    return at == NULL ? -1 : take_hex(&at, out);
}

int proc_pending_read(const char *text, uint64_t *out)
{
    uint64_t thread, process;
    if (read_mask(text, "SigPnd:", &thread) < 0 || read_mask(text, "ShdPnd:", &process) < 0)
        return -1;
    *out = thread | process;
    return 0;
}

int proc_caught_read(const char *text, uint64_t *out)
{
    return read_mask(text, "SigCgt:", out);
}

int proc_run_ns_read(const char *text, uint64_t *out)
{
    uint64_t ns;
    if (take_digits(&text, &ns) < 0 || *text != ' ')
        return -1;
    *out = ns;
    return 0;
}

int proc_call_read(const char *text, struct proc_call *out)
{
    struct proc_call call;
    if (take_digits(&text, &call.number) < 0)
        return -1;
    for (int i = 0; i < PROC_CALL_ARGUMENTS; i++) {
        if (strncmp(text, " 0x", 3) != 0)
            return -1;
        text += 3;
        if (take_hex(&text, &call.arguments[i]) < 0)
            return -1;
    }
    *out = call;
    return 0;
}

int proc_io_read(const char *text, struct proc_io *out)
{
    struct proc_io io;
    if (read_key(text, "rchar:", &io.read_bytes) < 0 ||
        read_key(text, "wchar:", &io.written_bytes) < 0)
        return -1;
    *out = io;
    return 0;
}

/* "some avg10=98.85 avg60=99.29 avg300=99.60 total=2669274995" */
static int read_pressure_line(const char *line, double *percent, uint64_t *total_us)
{
    static const char first[] = "avg10=", last[] = " total=";
    const char *end = line + strcspn(line, "\n"), *total = strstr(line, last);
    if (strncmp(line, first, strlen(first)) != 0 || total == NULL || total > end)
        return -1;
    const char *at = line + strlen(first);
    total += strlen(last);
    return take_decimal(&at, percent) < 0 ? -1 : take_digits(&total, total_us);
}

int proc_pressure_read(const char *text, struct proc_pressure *out)
{
    struct proc_pressure pressure = {.some_us = 0};
    const char *some = after_key(text, "some"), *full = after_key(text, "full");
    if (some == NULL || read_pressure_line(some, &pressure.some_percent, &pressure.some_us) < 0 ||
        (full != NULL && read_pressure_line(full, &pressure.full_percent, &pressure.full_us) < 0))
        return -1;
    *out = pressure;
    return 0;
}

int proc_load_read(const char *text, double *out)
{
    return take_decimal(&text, out);
}

int proc_memory_read(const char *text, struct proc_memory *out)
{
    uint64_t total, available;
    if (read_key(text, "MemTotal:", &total) < 0 ||
        read_key(text, "MemAvailable:", &available) < 0 || total > UINT64_MAX / 1024 ||
        available > UINT64_MAX / 1024)
        return -1;
    *out = (struct proc_memory){.total_bytes = total * 1024, .available_bytes = available * 1024};
    return 0;
}

int proc_mapping_read(const char *line, size_t length, struct proc_mapping *out)
{
    const char *path = memchr(line, '/', length);
    char *at = NULL;
    if (path == NULL)
        return -1;
    struct proc_mapping found = {.path = path, .length = (size_t)(line + length - path)};
    found.start = strtoull(line, &at, 16);
    if (*at != '-')
        return -1;
    found.end = strtoull(at + 1, &at, 16);
    if (path - at < 6 || at[0] != ' ' || strcspn(at + 1, " ") != 4 || found.end <= found.start)
        return -1;
    found.rights = at + 1;
    found.offset = strtoull(at + 6, &at, 16);
    const char *device = at + (*at == ' ');
    at = device < path ? memchr(device, ' ', (size_t)(path - device)) : NULL;
    found.inode = at != NULL ? strtoull(at, NULL, 10) : 0;
    *out = found;
    return 0;
}
