/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/listener.h"

struct dial_attempt {
    struct dial *dial;
    struct sockaddr_storage address;
    int fd, errnum; /* errnum: why it failed; 0: not tried or under way */
    struct loop_fd *watch;
};

struct dial {
    struct loop *loop;
    struct loop_timer *next, *deadline;
    struct dial_attempt *attempts; /* in the order of trying */
    size_t count, started, failed;
    int port;
    int64_t limit_ms, dead_after_ms;
    void (*done)(void *context, const struct dial_result *result);
    void *context;
};

void dial_address_text(const struct sockaddr_storage *address, char *text, size_t room)
{
    if (getnameinfo((const struct sockaddr *)address,
                    address->ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                  : sizeof(struct sockaddr_in6),
                    text, (socklen_t)room, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(text, room, "?");
    const char mapped[] = "::ffff:";
    if (strncmp(text, mapped, sizeof(mapped) - 1) == 0 && strchr(text, '.') != NULL)
        memmove(text, text + sizeof(mapped) - 1, strlen(text) - sizeof(mapped) + 2);
}

void dial_order(const struct resolve_result *addresses, size_t *order)
{
    bool used[RESOLVE_ADDRESSES_MAX] = {false};
    int wanted = addresses->count > 0 ? addresses->addresses[0].ss_family : 0;
    for (size_t placed = 0; placed < addresses->count; placed++) {
        size_t pick = RESOLVE_ADDRESSES_MAX, other = RESOLVE_ADDRESSES_MAX;
        for (size_t i = addresses->count; i-- > 0;) {
            if (used[i])
                continue;
            other = i;
            if (addresses->addresses[i].ss_family == wanted)
                pick = i;
        }
        if (pick == RESOLVE_ADDRESSES_MAX)
            pick = other;
        used[pick] = true;
        order[placed] = pick;
        wanted = addresses->addresses[pick].ss_family == AF_INET ? AF_INET6 : AF_INET;
    }
}

static void attempt_close(struct dial_attempt *attempt)
{
    loop_fd_destroy(attempt->watch);
    attempt->watch = NULL;
    fd_close(&attempt->fd);
}

void dial_cancel(struct dial *dial)
{
    if (dial == NULL)
        return;
    for (size_t i = 0; i < dial->count; i++)
        attempt_close(&dial->attempts[i]);
    loop_timer_destroy(dial->next);
    loop_timer_destroy(dial->deadline);
    free(dial->attempts);
    free(dial);
}

static void dial_answer(struct dial *dial, const struct dial_result *result)
{
    void (*done)(void *, const struct dial_result *) = dial->done;
    void *context = dial->context;
    dial_cancel(dial);
    done(context, result);
}

/* What tells the user most comes first: a host that refuses is up. */
static int telling(int errnum)
{
    switch (errnum) {
    case ECONNREFUSED: return 4;
    case ECONNRESET: return 3;
    case 0: return 2; /* silent so far */
    case ETIMEDOUT: return 2;
    case EHOSTUNREACH: return 1;
    default: return 0;
    }
}

static void explain(const struct dial *dial, struct dial_result *result)
{
    const struct dial_attempt *best = &dial->attempts[0];
    for (size_t i = 1; i < dial->started; i++) {
        if (telling(dial->attempts[i].errnum) > telling(best->errnum))
            best = &dial->attempts[i];
    }
    char at[64], others[48] = "", within[32] = "";
    dial_address_text(&best->address, at, sizeof(at));
    if (dial->started > 1)
        snprintf(others, sizeof(others), " (%zu addresses tried)", dial->started);
    char *why = result->why;
    size_t room = sizeof(result->why);
    switch (best->errnum) {
    case 0:
    case ETIMEDOUT:
        if (best->errnum == 0)
            snprintf(within, sizeof(within), " within %.3g s", (double)dial->limit_ms / 1000);
        snprintf(why, room, "no answer from %s%s: host down, or a firewall drops port %d%s", at,
                 within, dial->port, others);
        break;
    case ECONNREFUSED:
        snprintf(why, room, "connection refused by %s: is sshd running on port %d?%s", at,
                 dial->port, others);
        break;
    case EHOSTUNREACH:
        snprintf(why, room, "no route to %s: host down, or wrong network%s", at, others);
        break;
    case ENETUNREACH:
        snprintf(why, room, "the network of %s cannot be reached from here: check the routes%s", at,
                 others);
        break;
    default:
        snprintf(why, room, "cannot connect to %s port %d: %s%s", at, dial->port,
                 strerrordesc_np(best->errnum), others);
    }
}

static void dial_fail(void *context)
{
    struct dial_result result = {.fd = -1};
    explain(context, &result);
    dial_answer(context, &result);
}

static void attempt_won(struct dial_attempt *attempt)
{
    struct dial *dial = attempt->dial;
    struct dial_result result = {.fd = attempt->fd};
    attempt->fd = -1;
    tcp_options_set(result.fd, dial->dead_after_ms); /* after connecting: it has its own deadline */
    dial_address_text(&attempt->address, result.peer, sizeof(result.peer));
    dial_answer(dial, &result);
}

/* The dial may be gone after this. */
static void attempt_failed(struct dial_attempt *attempt, int errnum)
{
    struct dial *dial = attempt->dial;
    attempt->errnum = errnum;
    attempt_close(attempt);
    dial->failed++;
    if (dial->failed == dial->count)
        dial_fail(dial);
    else if (dial->started < dial->count)
        loop_timer_set(dial->next, 0);
}

static void attempt_ready(void *context, int what)
{
    (void)what;
    struct dial_attempt *attempt = context;
    int errnum = fd_connect_errno(attempt->fd);
    if (errnum == 0)
        attempt_won(attempt);
    else
        attempt_failed(attempt, errnum);
}

static void attempt_start(struct dial_attempt *attempt)
{
    struct dial *dial = attempt->dial;
    attempt->fd = socket(attempt->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (attempt->fd < 0) {
        attempt_failed(attempt, errno);
        return;
    }
    socklen_t length = attempt->address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                             : sizeof(struct sockaddr_in6);
    const struct sockaddr *to = (const struct sockaddr *)&attempt->address;
    if (TEMP_FAILURE_RETRY(connect(attempt->fd, to, length)) < 0 && errno != EINPROGRESS) {
        attempt_failed(attempt, errno);
        return;
    }
    attempt->watch = loop_fd_create(dial->loop, attempt->fd, attempt_ready, attempt);
    loop_fd_watch(attempt->watch, LOOP_WRITE);
    if (dial->started < dial->count)
        loop_timer_set(dial->next, DIAL_STAGGER_MS);
}

static void next_fire(void *context)
{
    struct dial *dial = context;
    if (dial->started < dial->count)
        attempt_start(&dial->attempts[dial->started++]);
}

struct dial *dial_start(struct loop *loop, const struct resolve_result *addresses, int port,
                        int64_t limit_ms, int64_t dead_after_ms,
                        void (*done)(void *context, const struct dial_result *result),
                        void *context)
{
    struct dial *dial = MEM_NEW((struct dial){.loop = loop,
                                              .count = addresses->count,
                                              .port = port,
                                              .limit_ms = limit_ms,
                                              .dead_after_ms = dead_after_ms,
                                              .done = done,
                                              .context = context});
    dial->attempts = mem_array(dial->count, sizeof(*dial->attempts));
    size_t order[RESOLVE_ADDRESSES_MAX];
    dial_order(addresses, order);
    for (size_t i = 0; i < dial->count; i++) {
        struct dial_attempt *attempt = &dial->attempts[i];
        *attempt = (struct dial_attempt){
            .dial = dial, .address = addresses->addresses[order[i]], .fd = -1};
        /* The port is at the same place in both families. */
        ((struct sockaddr_in *)&attempt->address)->sin_port = htons((uint16_t)port);
    }
    dial->next = loop_timer_create(loop, next_fire, dial);
    dial->deadline = loop_timer_create(loop, dial_fail, dial);
    loop_timer_set(dial->next, 0);
    loop_timer_set(dial->deadline, limit_ms);
    return dial;
}
