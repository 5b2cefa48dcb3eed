/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/srun/dial_back.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/loop.h"
#include "io/tcp_options.h"
#include "io/tls_stream.h"
#include "transport/dial.h"

/*
 * The port that agents dial back to, on all addresses of this machine, IPv6 and IPv4. It accepts
 * connections, a few in each turn of the loop, so that thousands of agents may come at once.
 */

struct dial_listener_ops {
    /* The descriptor is the receiver's. */
    void (*accepted)(void *context, int fd, const struct sockaddr_storage *address);
    /* No descriptor is free for a connection that waits. The listener tries again. Called when that
     * begins, and with `for_long` when strangers have had time to leave theirs. */
    void (*full)(void *context, const char *cause, bool for_long);
};

enum {
    BACKLOG = 4096,
    ACCEPTS_PER_TURN = 32,
    FULL_MS = 200,    /* to wait when no descriptor is free */
    FULL_ROUNDS = 30, /* longer than strangers may stay */
};

struct dial_listener {
    const struct dial_listener_ops *ops;
    void *context;
    int fd, port;
    struct loop_fd *watch;
    struct loop_timer *full;
    int full_rounds; /* in succession */
};

static void again(void *context)
{
    const struct dial_listener *listener = context;
    loop_fd_watch(listener->watch, LOOP_READ);
}

static void be_full(struct dial_listener *listener, const char *cause)
{
    loop_fd_watch(listener->watch, 0);
    loop_timer_set(listener->full, FULL_MS);
    int round = ++listener->full_rounds;
    if (round == 1 || round == FULL_ROUNDS)
        listener->ops->full(listener->context, cause, round == FULL_ROUNDS);
}

static void accept_some(void *context, int what)
{
    struct dial_listener *listener = context;
    (void)what;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
        socklen_t length = sizeof(address);
        int fd = accept4(listener->fd, (struct sockaddr *)&address, &length,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            listener->full_rounds = 0;
            listener->ops->accepted(listener->context, fd, &address);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            if (i == 0) /* else perhaps no connection waits: descriptors come first */
                be_full(listener, strerror(errno));
            return;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } /* else that one has gone again */
    }
}

/* -1: this machine has none of that family. */
static int listen_on(int family, int *port)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    socklen_t length =
        family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    const int off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, BACKLOG) < 0 ||
                    getsockname(fd, (struct sockaddr *)&address, &length) < 0))
        fd_close(&fd);
    /* The port is at the same place in both families. */
    *port = fd < 0 ? 0 : ntohs(((struct sockaddr_in *)&address)->sin_port);
    return fd;
}

/* Borrows `ops`. NULL: this machine has no port for it. */
static struct dial_listener *listener_create(struct loop *loop, const struct dial_listener_ops *ops,
                                             void *context, struct error *err)
{
    int port;
    int fd = listen_on(AF_INET6, &port);
    if (fd < 0)
        fd = listen_on(AF_INET, &port);
    if (fd < 0) {
        error_errno(err, errno, "cannot open a port for agents to dial back to");
        return NULL;
    }
    struct dial_listener *listener = mem_alloc(sizeof(*listener));
    *listener = (struct dial_listener){.ops = ops, .context = context, .fd = fd, .port = port};
    listener->full = loop_timer_create(loop, again, listener);
    listener->watch = loop_fd_create(loop, fd, accept_some, listener);
    loop_fd_watch(listener->watch, LOOP_READ);
    return listener;
}

static void listener_destroy(struct dial_listener *listener)
{
    if (listener == NULL)
        return;
    loop_fd_destroy(listener->watch);
    loop_timer_destroy(listener->full);
    fd_close(&listener->fd);
    free(listener);
}

static int listener_port(const struct dial_listener *listener)
{
    return listener->port;
}

/* Who connects, and whether it is an agent of this job. */

#define WARNINGS_MAX 8 /* about refused claims; then -v tells the rest */

/* A connection that has no name yet. */
struct dial_back_guest {
    struct dial_back *dial;
    struct tls_end end;
    struct loop_fd *watch;
    struct loop_timer *deadline;
    char peer[64];
    struct dial_back_guest *next; /* younger */
};

struct dial_back_claim {
    struct dial_back *dial;
    char *name;
    const struct dial_back_events *events;
    void *context;
    struct tls_stream *stream; /* NULL: it has not come, or is over */
    bool has_come, has_gone, has_failed;
    char peer[64]; /* of its first connection */
    struct dial_back_claim *next;
};

struct dial_back {
    struct dial_back_config config;
    struct tls_party *party;
    char key[2 * TLS_KEY_SIZE + 1];
    struct dial_listener *listener;
    struct dial_back_guest *oldest;
    int guests, warnings;
    bool gave_up; /* a claim failed, or ended before its agent came: the agent may still come */
    struct dial_back_claim *claims;
};

static void tell(struct dial_back *dial, enum log_level level, char *line)
{
    if (level == LOG_WARNING && ++dial->warnings > WARNINGS_MAX)
        level = LOG_INFO;
    dial->config.note(dial->config.context, level, line);
    free(line);
}

/* Guests */

static void guest_unlink(struct dial_back_guest *guest)
{
    struct dial_back_guest **at = &guest->dial->oldest;
    while (*at != guest)
        at = &(*at)->next;
    *at = guest->next;
    guest->dial->guests--;
}

static void guest_close(struct dial_back_guest *guest)
{
    guest_unlink(guest);
    loop_fd_destroy(guest->watch);
    loop_timer_destroy(guest->deadline);
    if (guest->end.session != NULL)
        guest->end.module->destroy(guest->end.session);
    fd_close(&guest->end.fd);
    free(guest);
}

/* What `identity` claims to be; NULL: no node of this job. */
static const char *claimed_name(const struct dial_back *dial, const char *identity)
{
    const char *words[] = {DIAL_BACK_IDENTITY, dial->config.job_id};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = strlen(words[i]);
        if (strncmp(identity, words[i], length) != 0 || identity[length] != ':')
            return NULL;
        identity += length + 1;
    }
    return identity;
}

static void refuse(struct dial_back_guest *guest, const char *why)
{
    char line[DIAL_BACK_LINE_MAX];
    int length = snprintf(line, sizeof(line), DIAL_BACK_REFUSED "%s\n", why);
    guest->end.module->write(guest->end.session, line, (size_t)length);
    guest->end.module->end(guest->end.session);
    guest_close(guest);
}

static void claim_ended(void *context, const char *why)
{
    struct dial_back_claim *claim = context;
    claim->has_gone = true;
    if (why != NULL)
        claim->events->broken(claim->context, why);
}

/* The claim may be gone after it. */
static void claim_fail(struct dial_back_claim *claim, const char *cause)
{
    char *why AUTO_FREE =
        mem_printf("cannot accept its agent: %s; raise the limit of open files (ulimit -n)", cause);
    claim->has_failed = claim->dial->gave_up = true;
    claim->events->failed(claim->context, why);
}

static bool welcome(struct dial_back_guest *guest)
{
    static const char line[] = DIAL_BACK_WELCOME "\n";
    const ssize_t length = (ssize_t)sizeof(line) - 1;
    return guest->end.module->write(guest->end.session, line, (size_t)length) == length;
}

static void take_in(struct dial_back_guest *guest, struct dial_back_claim *claim)
{
    struct dial_back *dial = guest->dial;
    struct error err = ERROR_INIT;
    struct transport_stream stream = {.read_fd = -1};
    if (!welcome(guest)) { /* it will come again */
        tell(dial, LOG_INFO,
             mem_printf("lost the connection to the agent of %s at %s: %s", claim->name,
                        guest->peer, guest->end.module->problem(guest->end.session)));
        guest_close(guest);
        return;
    }
    loop_fd_destroy(guest->watch); /* the stream makes one of its own */
    guest->watch = NULL;
    claim->stream = tls_stream_create(dial->config.loop, &guest->end, &stream.read_fd, claim_ended,
                                      claim, &err);
    if (claim->stream == NULL) {
        guest_close(guest);
        claim_fail(claim, err.text);
        return;
    }
    stream.write_fd = stream.read_fd;
    snprintf(stream.peer, sizeof(stream.peer), "%s", guest->peer);
    snprintf(claim->peer, sizeof(claim->peer), "%s", guest->peer);
    guest->end.session = NULL; /* the stream has both */
    guest->end.fd = -1;
    guest_close(guest);
    claim->has_come = true;
    claim->events->up(claim->context, &stream);
}

/* It has the key. */
static void check_claim(struct dial_back_guest *guest)
{
    struct dial_back *dial = guest->dial;
    const char *name = claimed_name(dial, guest->end.module->identity(guest->end.session));
    struct dial_back_claim *claim = dial->claims;
    while (claim != NULL && (name == NULL || claim->has_failed || strcmp(claim->name, name) != 0))
        claim = claim->next;
    if (claim == NULL) {
        tell(dial, dial->gave_up ? LOG_INFO : LOG_WARNING,
             mem_printf("refused an agent from %s: it identifies itself as %s, which hvdrun does "
                        "not expect",
                        guest->peer, name == NULL ? "an agent of another job" : name));
        refuse(guest, dial->gave_up ? "hvdrun no longer waits for this agent"
                                    : "hvdrun does not expect an agent of this name");
    } else if (claim->has_come) {
        tell(dial, LOG_WARNING,
             mem_printf("refused a second agent of %s, from %s: the first came from %s",
                        claim->name, guest->peer, claim->peer));
        refuse(guest, "an agent of this name is connected already");
    } else {
        take_in(guest, claim);
    }
}

static void guest_ready(void *context, int what)
{
    struct dial_back_guest *guest = context;
    const struct tls_module *module = guest->end.module;
    (void)what;
    switch (module->advance(guest->end.session)) {
    case TLS_HANDSHAKE:
        loop_fd_watch(guest->watch, module->wants(guest->end.session, TLS_SHAKING));
        return;
    case TLS_OPEN: check_claim(guest); return;
    case TLS_FAILED: break;
    }
    bool has_wrong_key = module->has_wrong_key(guest->end.session);
    tell(guest->dial, has_wrong_key ? LOG_WARNING : LOG_INFO,
         mem_printf("refused a connection from %s: %s", guest->peer,
                    module->problem(guest->end.session)));
    guest_close(guest);
}

static void guest_late(void *context)
{
    struct dial_back_guest *guest = context;
    tell(guest->dial, LOG_INFO,
         mem_printf("closed the connection from %s: it did not identify itself within %d s",
                    guest->peer, DIAL_BACK_HANDSHAKE_MS / 1000));
    guest_close(guest);
}

static void make_room(struct dial_back *dial)
{
    if (dial->guests < dial->config.guests)
        return;
    tell(dial, LOG_INFO,
         mem_printf(
             "closed the connection from %s: too many connections have not identified themselves",
             dial->oldest->peer));
    guest_close(dial->oldest);
}

static void guest_create(struct dial_back *dial, int fd, const struct sockaddr_storage *address)
{
    const struct tls_module *module = dial->config.module;
    struct error err = ERROR_INIT;
    make_room(dial);
    struct tls_session *session = module->create(dial->party, fd, &err);
    if (session == NULL) {
        tell(dial, LOG_WARNING, mem_strdup(err.text));
        close(fd);
        return;
    }
    struct dial_back_guest *guest = mem_alloc(sizeof(*guest));
    *guest = (struct dial_back_guest){.dial = dial, .end = {module, session, fd}};
    dial_address_text(address, guest->peer, sizeof(guest->peer));
    tcp_options_set(fd, dial->config.dead_after_ms);
    struct dial_back_guest **last = &dial->oldest;
    while (*last != NULL)
        last = &(*last)->next;
    *last = guest;
    dial->guests++;
    guest->watch = loop_fd_create(dial->config.loop, fd, guest_ready, guest);
    guest->deadline = loop_timer_create(dial->config.loop, guest_late, guest);
    loop_timer_set(guest->deadline, DIAL_BACK_HANDSHAKE_MS);
    loop_fd_watch(guest->watch, LOOP_READ);
}

/* A callback may forget any claim, so each search starts from the beginning. */
static void fail_all(struct dial_back *dial, const char *cause)
{
    for (;;) {
        struct dial_back_claim *claim = dial->claims;
        while (claim != NULL && (claim->has_come || claim->has_failed))
            claim = claim->next;
        if (claim == NULL)
            return;
        claim_fail(claim, cause);
    }
}

static void accepted(void *context, int fd, const struct sockaddr_storage *address)
{
    guest_create(context, fd, address);
}

static void full(void *context, const char *cause, bool for_long)
{
    struct dial_back *dial = context;
    if (for_long)
        fail_all(dial, cause);
    else
        tell(dial, LOG_WARNING,
             mem_printf("cannot accept an agent: %s; raise the limit of open files (ulimit -n)",
                        cause));
}

static int make_key(struct dial_back *dial, struct error *err)
{
    struct tls_party_config party = {.is_server = true};
    if (getrandom(party.key, sizeof(party.key), 0) != (ssize_t)sizeof(party.key))
        return error_errno(err, errno, "cannot create a key for the job");
    for (size_t i = 0; i < sizeof(party.key); i++)
        snprintf(&dial->key[2 * i], 3, "%02x", party.key[i]);
    dial->party = dial->config.module->party_create(&party, err);
    explicit_bzero(party.key, sizeof(party.key));
    return dial->party == NULL ? -1 : 0;
}

struct dial_back *dial_back_create(const struct dial_back_config *config, struct error *err)
{
    static const struct dial_listener_ops ops = {.accepted = accepted, .full = full};
    struct dial_back *dial = mem_alloc(sizeof(*dial));
    *dial = (struct dial_back){.config = *config};
    if (make_key(dial, err) == 0) {
        dial->listener = listener_create(config->loop, &ops, dial, err);
        if (dial->listener != NULL)
            return dial;
    }
    dial_back_destroy(dial);
    return NULL;
}

void dial_back_destroy(struct dial_back *dial)
{
    if (dial == NULL)
        return;
    while (dial->oldest != NULL)
        guest_close(dial->oldest);
    listener_destroy(dial->listener);
    dial->config.module->party_destroy(dial->party);
    explicit_bzero(dial->key, sizeof(dial->key));
    free(dial);
}

int dial_back_port(const struct dial_back *dial)
{
    return listener_port(dial->listener);
}

const char *dial_back_key(const struct dial_back *dial)
{
    return dial->key;
}

struct dial_back_claim *dial_back_expect(struct dial_back *dial, const char *name,
                                         const struct dial_back_events *events, void *context)
{
    struct dial_back_claim *claim = mem_alloc(sizeof(*claim));
    *claim = (struct dial_back_claim){.dial = dial,
                                      .name = mem_strdup(name),
                                      .events = events,
                                      .context = context,
                                      .next = dial->claims};
    dial->claims = claim;
    return claim;
}

bool dial_back_has_gone(const struct dial_back_claim *claim)
{
    return claim->has_gone;
}

void dial_back_forget(struct dial_back_claim *claim)
{
    if (claim == NULL)
        return;
    struct dial_back_claim **at = &claim->dial->claims;
    while (*at != claim)
        at = &(*at)->next;
    *at = claim->next;
    claim->dial->gave_up |= !claim->has_come;
    tls_stream_destroy(claim->stream);
    free(claim->name);
    free(claim);
}
