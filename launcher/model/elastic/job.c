/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/job.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/mem.h"

#define TEXT_MAX 2048

struct elastic_action *elastic_emit(struct elastic *e, enum elastic_action_kind kind)
{
    struct elastic_actions *out = e->out;
    out->items = mem_one_more(out->items, out->count, &out->room, sizeof(*out->items));
    struct elastic_action *action = &out->items[out->count++];
    *action = (struct elastic_action){.kind = kind, .host = -1, .seat = -1, .deadline_ms = -1};
    return action;
}

void elastic_say(struct elastic *e, int level, const char *format, ...)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    va_list args;
    va_start(args, format);
    int formatted = buf_vprintf(&text, format, args);
    va_end(args);
    if (formatted < 0)
        buf_puts(&text, "(a line too long to show)");
    e->texts = mem_one_more(e->texts, e->text_count, &e->text_room, sizeof(*e->texts));
    e->texts[e->text_count++] = mem_strdup(buf_text(&text));
    struct elastic_action *action = elastic_emit(e, ELASTIC_SAY);
    action->level = level;
    action->text = e->texts[e->text_count - 1];
}

void elastic_say_slot_blacklisted(struct elastic *e, int host, int slot)
{
    int64_t until = e->hosts.items[host].slot_records[slot].blacklisted_until_ms;
    const char *name = elastic_hosts_name(&e->hosts, host);
    if (until == ELASTIC_FOR_GOOD)
        elastic_say(e, ELASTIC_WARNING,
                    "slot %d of %s is blacklisted for the rest of the job: the program crashed "
                    "there %d time%s",
                    slot, name, e->config.failure_limit, elastic_plural(e->config.failure_limit));
    else
        elastic_say(e, ELASTIC_WARNING,
                    "slot %d of %s is blacklisted for %lld s: the program crashed there %d time%s",
                    slot, name, (long long)((until - e->now_ms + 999) / 1000),
                    e->config.failure_limit, elastic_plural(e->config.failure_limit));
}

void elastic_forget_texts(struct elastic *e)
{
    for (size_t i = 0; i < e->text_count; i++)
        free(e->texts[i]);
    e->text_count = 0;
}

void elastic_timer_set(struct elastic *e, enum elastic_timer timer, int64_t due_ms)
{
    e->timers[timer] = due_ms;
}

void elastic_timer_off(struct elastic *e, enum elastic_timer timer)
{
    e->timers[timer] = INT64_MAX;
}

const char *elastic_plural(int count)
{
    return count == 1 ? "" : "s";
}
