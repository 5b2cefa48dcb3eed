/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/record.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"

int64_t exit_time(int64_t when_ns)
{
    if (when_ns < -EXIT_TIME_MAX)
        return -EXIT_TIME_MAX;
    return when_ns > EXIT_TIME_MAX ? EXIT_TIME_MAX : when_ns;
}

static int weight(enum exit_fact fact)
{
    switch (fact) {
    case FACT_NONE: return 0;
    case FACT_STARTED: return 1;
    case FACT_EXITED:
    case FACT_SIGNALED: return 2;
    case FACT_ABORTED:
    case FACT_NOT_EXECUTED: break;
    }
    return 3;
}

void exit_record_merge(struct exit_record *record, enum exit_fact fact,
                       const struct exit_event *event, const char *text)
{
    int64_t when = exit_time(event->when_ns);
    bool timed = exit_record_ended(record);
    if (weight(fact) > weight(record->fact)) {
        record->fact = fact;
        record->code = event->code;
        record->core = fact == FACT_SIGNALED && event->core;
        free(record->text);
        record->text =
            exit_text(text, fact == FACT_NOT_EXECUTED ? EXIT_TEXT_OWN : EXIT_TEXT_FOREIGN);
    }
    if (event->ending_ns != 0)
        record->ending_ns = exit_time(event->ending_ns);
    if (!timed || when < record->when_ns) {
        record->when_ns = when;
        record->uncertainty_ns = event->uncertainty_ns < 0 ? 0 : exit_time(event->uncertainty_ns);
    }
}

void exit_record_clear(struct exit_record *record)
{
    free(record->text);
    *record = (struct exit_record){.fact = FACT_NONE};
}

bool exit_record_ended(const struct exit_record *record)
{
    return record->fact > FACT_STARTED;
}

bool exit_record_failed(const struct exit_record *record)
{
    bool clean = record->fact == FACT_EXITED && (record->code & 0xff) == 0;
    return exit_record_ended(record) && !clean;
}

int exit_record_status(const struct exit_record *record)
{
    int code = record->code & 0xff;
    if (record->fact == FACT_SIGNALED)
        return 128 + (record->code & 0x7f);
    if (record->fact == FACT_ABORTED || record->fact == FACT_NOT_EXECUTED)
        return code == 0 ? 1 : code;
    return code;
}

static int signal_grade(int number)
{
    switch (number) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGSYS:
    case SIGTRAP:
    case SIGKILL:
    case SIGXCPU:
    case SIGXFSZ: return 2;
    case SIGABRT: return 1;
    default: return 0;
    }
}

int exit_record_grade(const struct exit_record *record)
{
    switch (record->fact) {
    case FACT_SIGNALED: return signal_grade(record->code);
    case FACT_NOT_EXECUTED: return 2;
    case FACT_ABORTED: return 1;
    case FACT_NONE:
    case FACT_STARTED:
    case FACT_EXITED: break;
    }
    return 0;
}

bool exit_is_after_kill(int64_t ended_ns, int64_t ending_ns, int64_t killed_ns)
{
    return (ending_ns != 0 ? ending_ns : ended_ns) > killed_ns;
}

int64_t exit_event_time(const struct exit_event *event)
{
    bool answers_none = event->signaled && signal_grade(event->code) == 2;
    return answers_none && event->ending_ns != 0 ? event->ending_ns : event->when_ns;
}

const char *exit_record_grade_reason(const struct exit_record *record)
{
    bool outside = record->code == SIGKILL || record->code == SIGXCPU || record->code == SIGXFSZ;
    if (record->fact == FACT_NOT_EXECUTED)
        return "it could not start";
    if (record->fact == FACT_ABORTED)
        return "it aborted the job";
    return outside ? "it was killed from outside" : "it crashed";
}

void exit_signal_name(int number, struct buf *out)
{
    const char *name = sigabbrev_np(number);
    if (name != NULL)
        buf_printf(out, "SIG%s", name);
    else
        buf_printf(out, "signal %d", number);
}

void exit_record_describe(const struct exit_record *record, int rank, struct buf *out)
{
    const char *text = record->text;
    buf_printf(out, "rank %d ", rank);
    switch (record->fact) {
    case FACT_NONE: buf_puts(out, "was never started"); break;
    case FACT_STARTED: buf_puts(out, "ended without an exit status"); break;
    case FACT_EXITED: buf_printf(out, "exited with code %d", record->code & 0xff); break;
    case FACT_SIGNALED:
        buf_puts(out, "was killed by ");
        exit_signal_name(record->code, out);
        buf_puts(out, record->core ? " (core dumped)" : "");
        break;
    case FACT_ABORTED:
        buf_printf(out, "aborted the job with code %d%s", record->code,
                   (record->code & 0xff) == 0 ? " (status 1, because 0 would mean success)" : "");
        break;
    case FACT_NOT_EXECUTED: buf_puts(out, "could not start"); break;
    }
    if (text != NULL)
        buf_printf(out, ": %s", text);
}

char *exit_text(const char *text, size_t max)
{
    if (text == NULL)
        return NULL;
    size_t length = strnlen(text, max + 1);
    length = length > max ? plain_cut(text, max) : length;
    char *line = mem_strndup(text, length);
    plain_line(line, ' ');
    while (length > 0 && line[length - 1] == ' ')
        line[--length] = '\0';
    if (length == 0) {
        free(line);
        return NULL;
    }
    return line;
}
