/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/verdict.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/exit/record.h"

#define EXIT_NAME(name, text) [name] = (text),

const char *exit_cause_name(enum exit_cause cause)
{
    static const char *const names[] = {EXIT_CAUSE_LIST(EXIT_NAME)};
    return names[cause];
}

const char *exit_role_name(enum exit_role role)
{
    static const char *const names[] = {EXIT_ROLE_LIST(EXIT_NAME)};
    return names[role];
}

void verdict_set(struct verdict *out, int status, enum exit_cause cause, const char *explanation)
{
    *out = (struct verdict){.status = status, .cause = cause, .seat = -1, .node = -1};
    if (explanation != NULL)
        snprintf(out->explanation, sizeof(out->explanation), "%s", explanation);
}

void exit_outside_clear(struct exit_outside *outside)
{
    free(outside->launcher.text);
    free(outside->interrupted.stopped);
    *outside = (struct exit_outside){.launcher = {.status = 0}};
}

void exit_outside_failed(struct exit_outside *outside, int status, int64_t when_ns,
                         const char *text)
{
    if (outside->launcher.status != 0)
        return;
    outside->launcher.status = status > 0 && status <= 255 ? status : STATUS_LAUNCHER;
    outside->launcher.when_ns = when_ns;
    outside->launcher.text = exit_text(text, EXIT_TEXT_OWN);
}

void exit_outside_interrupted(struct exit_outside *outside, int signal, int64_t when_ns)
{
    if (outside->interrupted.signal != 0 || signal <= 0)
        return;
    outside->interrupted.signal = signal & 0x7f;
    outside->interrupted.when_ns = when_ns;
}

void exit_outside_stopped(struct exit_outside *outside, int signal, int64_t when_ns,
                          const char *text)
{
    if (outside->interrupted.signal != 0)
        return;
    exit_outside_interrupted(outside, signal, when_ns);
    outside->interrupted.stopped = exit_text(text, EXIT_TEXT_OWN);
}

bool exit_outside_ends(const struct exit_outside *outside)
{
    return outside->launcher.status != 0 || outside->interrupted.signal != 0;
}

void exit_outside_blame_launcher(const struct exit_outside *outside, struct verdict *out)
{
    int status = outside->launcher.status;
    const char *text = outside->launcher.text;
    enum exit_cause cause = status == STATUS_TIMEOUT         ? CAUSE_TIMEOUT
                            : status == STATUS_START_TIMEOUT ? CAUSE_START_TIMEOUT
                                                             : CAUSE_LAUNCHER;
    verdict_set(out, status, cause, text != NULL ? text : "the launcher failed");
}

void exit_outside_blame_interruption(const struct exit_outside *outside, struct verdict *out)
{
    int signal = outside->interrupted.signal;
    if (outside->interrupted.stopped == NULL)
        exit_outside_blame_signal(signal, out);
    else
        verdict_set(out, 128 + signal, CAUSE_STOPPED, outside->interrupted.stopped);
}

void exit_outside_blame_signal(int signal, struct verdict *out)
{
    AUTO_BUF struct buf text = BUF_INIT(sizeof(out->explanation));
    buf_puts(&text, signal == SIGPIPE ? "the reader of the output is gone (" : "interrupted (");
    exit_signal_name(signal, &text);
    buf_putc(&text, ')');
    verdict_set(out, 128 + signal, CAUSE_INTERRUPTED, buf_text(&text));
}
