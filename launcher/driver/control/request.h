/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests over the control socket of a running job: one JSON object in, one JSON object out.
 * No I/O.
 *
 *   {"do": "status"}                                the state of the job, see below
 *   {"do": "usage"}                                 what its ranks and hosts use
 *   {"do": "stop", "grace_s": 60}                   ends the job as Ctrl-C does, with that grace
 *   {"do": "signal", "signal": "USR1", "ranks": "0,4-7"}   sends it to these ranks, or to all
 *   {"do": "stacks", "ranks": "0,4-7", "native": true}   where these ranks are, or all, see below
 *   {"do": "wait"}                                  the answer comes at the end of the job
 *   {"do": "drain", "host": "c", "within_s": 60}    drains the host, at the latest after that time
 *   {"do": "undrain", "host": "c"}                  the job may use the host again
 *   {"do": "add", "hosts": "d:4,e:2"}               adds hosts, in the form of -H
 *
 * A request to stop or to signal may say who asks, with "command", a command of hvdrun, and "user",
 * the name of the user.
 *
 * The last three are for elastic jobs. Each request is a row of whoever answers it: the kind of the
 * job, or one of its parts (job/part.h). A request may have "protocol": N, the CONTROL_PROTOCOL of
 * the client; a job of an older version refuses it. Unknown keys are ignored.
 *
 * driver/tell/tell.h has the answer to a status request, features/usage/usage_driver.h
 * that to a usage request. Such a request also makes the job ask its agents for new values.
 * record.h has most of the answer to "wait". The answer to "stacks" comes after at most a few
 * seconds; with native frames, after 8 s. It has the keys below, and a reader must expect that any
 * of them is missing:
 *
 *   "stacks"    the same list as in --report, with the processes that do not run Python
 *   "text"      the same as a tree
 *   "missing"   HOSTS that did not answer, or null
 *   "remarks"   lines that say why native frames are missing, or null
 *   "odd"       a line that names the ranks that are elsewhere than most, or null
 *
 * The answer to the other requests is {"ok": true}. The answer to a request that fails is
 * {"error": LINE}.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"

#define CONTROL_PROTOCOL 1

struct control_later;

/* The client that asks. */
struct control_asker {
    const char *command; /* of hvdrun, as the client says; NULL: not known */
    const char
        *user; /* as the client says, but only root's processes are root's; NULL: not known */
};

/* A request. All of it is borrowed, but `later` may be taken. */
struct control_asked {
    const json_t *request;
    struct control_asker asker;
    const char *job;             /* the name of its record */
    struct control_later *later; /* for an answer that takes time (below) */
};

/* A request that somebody answers. Tables of them end with a row without a name. */
struct control_rule {
    const char *name; /* its "do" */
    /* The answer, which the caller frees. NULL: the text in `err` is the answer; without one it
     * comes through `later`, if that is taken, and otherwise at the end of the job. It may not
     * destroy the control. */
    json_t *(*answer)(void *context, const struct control_asked *asked, struct error *err);
};

/* The row of that name; NULL: there is none. `rules` may be NULL. */
const struct control_rule *control_rule_of(const struct control_rule *rules, const char *name);

/* What answers the requests to a job. */
struct control_answers {
    const char *job; /* the name of its record */
    const struct control_rule *(*find)(void *context, const char *name); /* NULL: nobody answers */
    void *context;                                                       /* also of the rules */
};

/* `by_root`: the client is a process of root. The answer, which the caller frees. NULL: it comes
 * through `later`, if that is taken; otherwise at the end of the job. */
json_t *control_request_answer(const struct control_answers *answers, const char *line,
                               size_t length, bool by_root, struct control_later *later);

/* What the rules share. The value under a key; NULL or -1: the error says what is wrong with it. */
const char *control_text(const struct control_asked *asked, const char *key, struct error *err);
const char *control_host(const struct control_asked *asked, const char *key, struct error *err);
/* In milliseconds; -1: there is none. */
int control_time(const struct control_asked *asked, const char *key, int64_t *ms,
                 struct error *err);
/* Such as "0,4-7", which is not parsed; NULL: there are none. */
int control_ranks(const struct control_asked *asked, const char *key, const char **ranks,
                  struct error *err);

/* The answer to a request that has no other; NULL if `result` is -1. */
json_t *control_accepted(int result);
/* "'hvdrun stop' (user alice, 14:03:22)". The caller frees it. */
char *control_asker_text(const struct control_asker *asker);
/* Adds the protocol and the name of the job's record: of two jobs with one id, the second has
 * another name there. */
void control_sign(const struct control_asked *asked, json_t *answer);

/* The answer to a request that takes time. Two owners hold it: the connection of the client, which
 * may close first, and the part that answers. */

/* For the connection. `answer` gets a borrowed reply, once. `give` gets one instead, sends it, and
 * returns the descriptor of the connection, which leaves it; -1: the client has gone. NULL: it
 * cannot be given. */
struct control_later *control_later_create(void (*answer)(void *context, const json_t *reply),
                                           int (*give)(void *context, const json_t *reply),
                                           void *context);
bool control_later_is_taken(const struct control_later *later);
/* The connection does not want the answer, or not any more; accepts NULL. */
void control_later_leave(struct control_later *later);

/* For whoever answers. It must call control_later_answer() once after this. */
void control_later_take(struct control_later *later);
void control_later_answer(struct control_later *later, json_t *reply_take);
/* The same, and what client and job say after this answer is the caller's: returns the connection,
 * which does not block. -1: the client has gone. */
int control_later_take_over(struct control_later *later, json_t *reply_take);

/* The requests that wait for a part. One is the first member of what the part knows of it. */
struct control_wait {
    struct control_later *later;
    LIST_ENTRY(control_wait) others;
};
LIST_HEAD(control_waits, control_wait);

void control_wait_begin(struct control_waits *waits, struct control_wait *wait,
                        struct control_later *later);
/* Answers it and frees what it begins. NULL: the job has ended. */
void control_wait_answer(struct control_wait *wait, json_t *reply_take);
