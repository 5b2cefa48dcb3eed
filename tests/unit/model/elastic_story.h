/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories about an elastic job: what happens to it in short words, and what it does, as text.
 *
 * Every word of the story lets the core act; expect() compares all actions since the last expect().
 * Lines for the user are kept apart (expect_said). Time moves by after() alone, which ticks
 * whenever a deadline passes. Request numbers of story_rejoin() are 100 * epoch + seat.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "model/elastic/elastic.h"
#include "model/hosts/entry.h"

#define STORY_BEGIN_MS 1000000

struct story {
    struct elastic_config config;
    struct elastic *e;
    struct elastic_actions actions;
    int64_t now;
    struct buf done, said;
};

static inline const char *story_host(const struct story *s, int host)
{
    return elastic_host_facts(s->e, host).entry->name;
}

static inline void story_note(struct story *s, const struct elastic_action *a)
{
    if (a->kind == ELASTIC_SAY) {
        buf_printf(&s->said, "%s\n", a->text);
        return;
    }
    buf_printf(&s->done, "%s%s", s->done.length > 0 ? ", " : "", elastic_action_name(a->kind));
    switch (a->kind) {
    case ELASTIC_CALL:
    case ELASTIC_LET_GO:
    case ELASTIC_GIVE_UP: buf_printf(&s->done, " %s", story_host(s, a->host)); break;
    case ELASTIC_HOST_BAD: buf_printf(&s->done, " %s (%s)", story_host(s, a->host), a->text); break;
    case ELASTIC_DEADLINE:
        if (a->deadline_ms < 0)
            buf_printf(&s->done, " %s none", story_host(s, a->host));
        else
            buf_printf(&s->done, " %s %lld", story_host(s, a->host),
                       (long long)(a->deadline_ms - STORY_BEGIN_MS));
        break;
    case ELASTIC_PREPARE:
    case ELASTIC_CANCEL:
    case ELASTIC_START:
    case ELASTIC_RESUMED: buf_printf(&s->done, " %u", (unsigned)a->epoch); break;
    case ELASTIC_ANSWER:
        buf_printf(&s->done, " %llu:%d", (unsigned long long)a->request, a->seat);
        break;
    case ELASTIC_KILL:
        assert_int_equal(a->grace_ms, 0);
        buf_printf(&s->done, " %d", a->seat);
        break;
    case ELASTIC_NOTIFY: buf_printf(&s->done, " %d", a->seat); break;
    case ELASTIC_END_ALL: buf_printf(&s->done, " %lld", (long long)a->grace_ms); break;
    case ELASTIC_VERDICT:
        buf_printf(&s->done, " %s", elastic_end_name(elastic_verdict(s->e)->end));
        break;
    default: break;
    }
}

static inline void story_event(struct story *s, struct elastic_event event)
{
    s->actions.count = 0;
    elastic_event(s->e, &event, s->now, &s->actions);
    for (size_t i = 0; i < s->actions.count; i++)
        story_note(s, &s->actions.items[i]);
}
#define happens(s, ...) story_event(s, (struct elastic_event){__VA_ARGS__})

/* ---- beginning and end ---- */

static inline struct elastic_config *story_config(struct story *s)
{
    *s =
        (struct story){.now = STORY_BEGIN_MS, .done = BUF_INIT(1 << 20), .said = BUF_INIT(1 << 20)};
    elastic_config_init(&s->config);
    return &s->config;
}

static inline void story_begin(struct story *s)
{
    s->e = elastic_create(&s->config, s->now);
}

static inline void story_end(struct story *s)
{
    elastic_destroy(s->e);
    elastic_actions_destroy(&s->actions);
    buf_destroy(&s->done);
    buf_destroy(&s->said);
}

/* ---- what is expected ---- */

static inline void expect(struct story *s, const char *actions)
{
    assert_string_equal(buf_text(&s->done), actions);
    buf_clear(&s->done);
}

static inline void ignore(struct story *s)
{
    buf_clear(&s->done);
    buf_clear(&s->said);
}

static inline void expect_said(struct story *s, const char *part)
{
    if (strstr(buf_text(&s->said), part) == NULL)
        fail_msg("'%s' was not said, but: %s", part, buf_text(&s->said));
    buf_clear(&s->said);
}

static inline void expect_silence(struct story *s)
{
    assert_string_equal(buf_text(&s->said), "");
}

#define expect_state(s, state) \
    assert_string_equal(elastic_state_name(elastic_state((s)->e)), elastic_state_name(state))

/* Members in rank order: "a0 a1 +d0", host and slot, with + for the new ones. */
static inline void expect_members(struct story *s, const char *members)
{
    const struct elastic_plan *plan = elastic_plan(s->e);
    assert_non_null(plan);
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    for (int r = 0; r < plan->size; r++)
        buf_printf(&text, "%s%s%s%d", r > 0 ? " " : "", plan->members[r].is_new ? "+" : "",
                   story_host(s, plan->members[r].host), plan->members[r].slot);
    assert_string_equal(buf_text(&text), members);
}

static inline void expect_verdict(struct story *s, enum elastic_end end, const char *part)
{
    const struct elastic_verdict *verdict = elastic_verdict(s->e);
    assert_string_equal(elastic_end_name(verdict->end), elastic_end_name(end));
    if (strstr(verdict->text, part) == NULL)
        fail_msg("the verdict says: %s", verdict->text);
}

#define expect_host(s, name, wanted)                                                              \
    assert_string_equal(elastic_host_state_name(                                                  \
                            elastic_host_facts((s)->e, elastic_host_number((s)->e, name)).state), \
                        elastic_host_state_name(wanted))

static inline void expect_cause(struct story *s, const char *cause)
{
    assert_string_equal(elastic_facts(s->e)->cause, cause);
}

/* ---- what happens ---- */

static inline int number(struct story *s, const char *host)
{
    int n = elastic_host_number(s->e, host);
    assert_true(n >= 0);
    return n;
}

static inline void hosts(struct story *s, const char *text)
{
    struct host_list list = {.count = 0};
    if (text[0] != '\0')
        assert_int_equal(hosts_parse(text, &list, NULL), 0);
    happens(s, .kind = ELASTIC_HOSTS, .hosts = &list);
    hosts_destroy(&list);
}

static inline void came_as(struct story *s, const char *host, const char *boot_id)
{
    happens(s, .kind = ELASTIC_HOST_CAME, .host = number(s, host), .text = boot_id);
}

static inline void came(struct story *s, const char *host)
{
    came_as(s, host, host);
}

static inline void unreached(struct story *s, const char *host, const char *text)
{
    happens(s, .kind = ELASTIC_HOST_UNREACHED, .host = number(s, host), .text = text);
}

static inline void lost(struct story *s, const char *host)
{
    happens(s, .kind = ELASTIC_HOST_LOST, .host = number(s, host), .text = "no heartbeat",
            .since_ms = s->now);
}

static inline void drain_by(struct story *s, const char *host, int64_t in_ms)
{
    happens(s, .kind = ELASTIC_HOST_DRAIN, .host = number(s, host), .text = "preempted",
            .deadline_ms = in_ms < 0 ? -1 : s->now + in_ms);
}

static inline void undrain(struct story *s, const char *host)
{
    happens(s, .kind = ELASTIC_HOST_UNDRAIN, .host = number(s, host));
}

static inline void prepared(struct story *s)
{
    happens(s, .kind = ELASTIC_PREPARED, .epoch = elastic_plan(s->e)->epoch);
}

static inline void prepare_failed(struct story *s, const char *host, const char *text)
{
    happens(s, .kind = ELASTIC_PREPARE_FAILED, .epoch = elastic_plan(s->e)->epoch,
            .host = number(s, host), .text = text, .code = 127);
}

static inline bool sits(struct story *s, int seat, enum elastic_worker_state state)
{
    return elastic_worker_facts(s->e, seat).state == state;
}

static inline void started(struct story *s) /* all that are starting */
{
    for (int seat = 0; seat < elastic_seat_count(s->e); seat++)
        if (sits(s, seat, ELASTIC_WORKER_STARTING))
            happens(s, .kind = ELASTIC_STARTED, .seat = seat);
}

static inline void registered(struct story *s) /* all that run */
{
    for (int seat = 0; seat < elastic_seat_count(s->e); seat++) {
        struct elastic_worker_facts w = elastic_worker_facts(s->e, seat);
        if (w.state == ELASTIC_WORKER_RUNNING && !w.registered)
            happens(s, .kind = ELASTIC_REGISTERED, .host = w.host, .local_rank = w.local_rank);
    }
}

static inline void asked_as(struct story *s, int seat, uint64_t request)
{
    struct elastic_worker_facts w = elastic_worker_facts(s->e, seat);
    happens(s, .kind = ELASTIC_ASKED, .host = w.host, .local_rank = w.local_rank,
            .request = request);
}

static inline void asked(struct story *s, int seat)
{
    asked_as(s, seat, 100 * elastic_plan(s->e)->epoch + (uint64_t)seat);
}

static inline void story_rejoin(struct story *s) /* all that run ask */
{
    uint64_t base = 100 * elastic_plan(s->e)->epoch;
    for (int seat = 0; seat < elastic_seat_count(s->e); seat++)
        if (sits(s, seat, ELASTIC_WORKER_RUNNING))
            asked_as(s, seat, base + (uint64_t)seat);
}

static inline void dropped(struct story *s, uint64_t request)
{
    happens(s, .kind = ELASTIC_ASK_DROPPED, .request = request);
}

static inline void exited_at(struct story *s, int seat, int code, int64_t since_ms)
{
    happens(s, .kind = ELASTIC_EXITED, .seat = seat, .code = code, .since_ms = since_ms);
}

static inline void exited(struct story *s, int seat, int code)
{
    exited_at(s, seat, code, s->now);
}

static inline void signaled(struct story *s, int seat, int signal)
{
    happens(s, .kind = ELASTIC_EXITED, .seat = seat, .code = signal, .signaled = true,
            .since_ms = s->now);
}

static inline void finished(struct story *s, int seat)
{
    happens(s, .kind = ELASTIC_FINISHED, .seat = seat);
}

static inline void ended(struct story *s, int seat, int code)
{
    exited(s, seat, code);
    finished(s, seat);
}

static inline void all_end(struct story *s, int signal) /* after END_ALL */
{
    for (int seat = 0; seat < elastic_seat_count(s->e); seat++) {
        if (sits(s, seat, ELASTIC_WORKER_KILLED))
            signaled(s, seat, signal);
        if (sits(s, seat, ELASTIC_WORKER_EXITED))
            finished(s, seat);
    }
}

static inline void after(struct story *s, int64_t ms)
{
    int64_t until = s->now + ms;
    for (;;) {
        int64_t due = elastic_deadline(s->e);
        if (due < 0 || due > until)
            break;
        s->now = due > s->now ? due : s->now;
        happens(s, .kind = ELASTIC_TICK);
    }
    s->now = until;
}

/* All hosts of `text` come, and the first epoch runs. */
static inline void story_runs(struct story *s, const char *text)
{
    story_begin(s);
    hosts(s, text);
    for (int h = 0; h < elastic_host_count(s->e); h++)
        if (elastic_host_facts(s->e, h).state == ELASTIC_HOST_CALLING)
            came(s, story_host(s, h));
    if (elastic_state(s->e) == ELASTIC_WAITING)
        after(s, s->config.gather_ms);
    prepared(s);
    started(s);
    expect_state(s, ELASTIC_RUNNING);
    ignore(s);
}

/* The same with workers that can rejoin. */
static inline void story_rejoins(struct story *s, const char *text)
{
    story_runs(s, text);
    registered(s);
    ignore(s);
}

/* The epoch that was planned runs. */
static inline void goes_on(struct story *s)
{
    prepared(s);
    started(s);
    expect_state(s, ELASTIC_RUNNING);
    ignore(s);
}
