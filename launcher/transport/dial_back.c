/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/dial_back.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/strv.h"
#include "base/text.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/tls_stream.h"
#include "transport/dial.h"

#define WARNINGS_MAX 8 /* of each kind, each once; then -v tells the rest */

/* Whom a warning is about: peers without the key use up none of those about agents. */
enum subject { STRANGERS, AGENTS, SUBJECTS };

/* A connection that has no name yet. */
struct dial_back_guest {
    struct dial_back *dial;
    struct tls_end end;
    struct loop_fd *watch;
    struct loop_timer *deadline;
    char peer[64];
    TAILQ_ENTRY(dial_back_guest) place;
};

struct dial_back_claim {
    struct dial_back *dial;
    char *name;
    const struct dial_back_events *events;
    void *context;
    struct tls_stream *stream; /* NULL: it has not come, or is over */
    bool has_come, has_gone, has_failed;
    char peer[64]; /* of its first connection */
    TAILQ_ENTRY(dial_back_claim) place;
};

struct dial_back {
    struct dial_back_config config;
    struct tls_party *party;
    char key[2 * TLS_KEY_SIZE + 1];
    struct listener *listener;
    TAILQ_HEAD(, dial_back_guest) guests; /* the oldest first */
    int guest_count;
    bool gave_up; /* a claim failed, or ended before its agent came: the agent may still come */
    TAILQ_HEAD(, dial_back_claim) claims; /* in the order in which they were made */
    struct strv former;                   /* names of claims that are over, if agents return */
    struct strv warned[SUBJECTS];         /* refused agents try again, and one warning is enough */
};

static void tell(struct dial_back *dial, enum log_level level, char *line)
{
    dial->config.note(dial->config.context, level, line);
    free(line);
}

static void warn(struct dial_back *dial, enum subject subject, char *line)
{
    struct strv *warned = &dial->warned[subject];
    bool is_told = warned->count < WARNINGS_MAX && !strv_has(warned, line);
    if (is_told)
        strv_add(warned, line);
    tell(dial, is_told ? LOG_WARNING : LOG_INFO, line);
    if (is_told && warned->count == WARNINGS_MAX)
        tell(dial, LOG_WARNING,
             mem_printf("further refused %s are shown only with -v",
                        subject == AGENTS ? "agents" : "connections"));
}

/* Guests */

static void guest_close(struct dial_back_guest *guest)
{
    TAILQ_REMOVE(&guest->dial->guests, guest, place);
    guest->dial->guest_count--;
    loop_fd_destroy(guest->watch);
    loop_timer_destroy(guest->deadline);
    guest->end.module->destroy(guest->end.session);
    fd_close(&guest->end.fd);
    free(guest);
}

/* What the agent claims to be; NULL: no node of this job. */
static const char *claimed_name(const struct dial_back_guest *guest)
{
    char *ours AUTO_FREE = mem_printf(DIAL_BACK_IDENTITY ":%s:", guest->dial->config.job_id);
    const char *identity = guest->end.module->identity(guest->end.session);
    return text_begins(identity, ours) ? identity + strlen(ours) : NULL;
}

static void refuse(struct dial_back_guest *guest, const char *why)
{
    char line[DIAL_BACK_LINE_MAX];
    bool may_wait = guest->dial->config.agents_return;
    int length =
        snprintf(line, sizeof(line), "%s%s\n", may_wait ? DIAL_BACK_WAIT : DIAL_BACK_REFUSED, why);
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
    static const char line[] = DIAL_BACK_WELCOME HVDRUN_VERSION "\n";
    const ssize_t length = (ssize_t)sizeof(line) - 1;
    return guest->end.module->write(guest->end.session, line, (size_t)length) == length;
}

/* Strangers leave, if their descriptors are needed. `kept` may be NULL. false: there were none. */
static bool close_guests(struct dial_back *dial, const struct dial_back_guest *kept)
{
    bool closed = false;
    for (struct dial_back_guest *guest = TAILQ_FIRST(&dial->guests), *next; guest != NULL;
         guest = next) {
        next = TAILQ_NEXT(guest, place);
        if (guest != kept) {
            guest_close(guest);
            closed = true;
        }
    }
    return closed;
}

static struct tls_stream *make_stream(struct dial_back_guest *guest, struct dial_back_claim *claim,
                                      int *fd, struct error *err)
{
    return tls_stream_create(guest->dial->config.loop, &guest->end, fd, claim_ended, claim, err);
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
    claim->stream = make_stream(guest, claim, &stream.read_fd, &err);
    if (claim->stream == NULL && close_guests(dial, guest))
        claim->stream = make_stream(guest, claim, &stream.read_fd, &err);
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

static bool is_any(const char *name)
{
    return name != NULL && strcmp(name, DIAL_BACK_ANY) == 0;
}

/* The one of that name, whatever has become of it. NULL: none, as for an agent of another job,
 * which has no name. */
static struct dial_back_claim *find_claim(const struct dial_back *dial, const char *name)
{
    struct dial_back_claim *claim;
    TAILQ_FOREACH (claim, &dial->claims, place) {
        bool fits =
            name != NULL && (is_any(name) ? !claim->has_come : strcmp(claim->name, name) == 0);
        if (fits && !claim->has_failed)
            return claim;
    }
    return NULL;
}

static void refuse_stranger(struct dial_back_guest *guest, const char *name)
{
    struct dial_back *dial = guest->dial;
    bool may_come = dial->gave_up || find_claim(dial, name) != NULL ||
                    (name != NULL && strv_has(&dial->former, name));
    char *line =
        mem_printf("refused an agent from %s: it identifies itself as %s, which hvdrun does "
                   "not expect",
                   guest->peer, name == NULL ? "an agent of another job" : name);
    if (may_come)
        tell(dial, LOG_INFO, line);
    else
        warn(dial, AGENTS, line);
    refuse(guest, may_come ? "hvdrun no longer waits for this agent"
                           : "hvdrun does not expect an agent of this name");
}

/* The claim of a name that was not expected before. NULL: the agent is refused. */
static struct dial_back_claim *admit(struct dial_back_guest *guest, const char *name)
{
    struct dial_back *dial = guest->dial;
    const char *why = dial->config.stranger(dial->config.context, name);
    struct dial_back_claim *claim = why == NULL ? find_claim(dial, name) : NULL;
    if (claim != NULL)
        return claim;
    why = why == NULL ? "hvdrun does not use this host now" : why;
    tell(dial, LOG_INFO, mem_printf("refused the agent of %s at %s: %s", name, guest->peer, why));
    refuse(guest, why);
    return NULL;
}

/* It has the key. */
static void check_claim(struct dial_back_guest *guest)
{
    struct dial_back *dial = guest->dial;
    const char *name = claimed_name(guest);
    struct dial_back_claim *claim = find_claim(dial, name);
    bool is_name = name != NULL && name_is_safe(name, strlen(name));
    if (claim == NULL && is_name && dial->config.stranger != NULL) {
        claim = admit(guest, name);
        if (claim == NULL)
            return;
    }
    bool any = is_any(name);
    if (claim == NULL && any && dial->config.stranger != NULL) {
        tell(dial, LOG_INFO,
             mem_printf("refused an agent from %s: it has no name, and the job has no host list",
                        guest->peer));
        refuse(guest, "the job has no host list, so each agent needs a name of its own (--name)");
    } else if (claim == NULL && any) {
        char *line = mem_printf("refused an agent from %s: all hosts of the list have an agent",
                                guest->peer);
        if (dial->config.agents_return)
            tell(dial, LOG_INFO, line);
        else
            warn(dial, AGENTS, line);
        refuse(guest, "all hosts of the list have an agent");
    } else if (claim == NULL || (dial->config.agents_return && claim->has_gone)) {
        refuse_stranger(guest, name);
    } else if (claim->has_come) {
        warn(dial, AGENTS,
             mem_printf("refused a second agent of %s, from %s: the first came from %s%s",
                        claim->name, guest->peer, claim->peer,
                        dial->config.agents_return
                            ? "; it comes in when that connection counts as lost (--node-timeout)"
                            : ""));
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
    char *line = mem_printf("refused a connection from %s: %s", guest->peer,
                            module->problem(guest->end.session));
    if (module->has_wrong_key(guest->end.session))
        warn(guest->dial, STRANGERS, line);
    else
        tell(guest->dial, LOG_INFO, line);
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
    struct dial_back_guest *oldest = TAILQ_FIRST(&dial->guests);
    if (dial->guest_count < dial->config.guests)
        return;
    tell(dial, LOG_INFO,
         mem_printf(
             "closed the connection from %s: too many connections have not identified themselves",
             oldest->peer));
    guest_close(oldest);
}

static void guest_create(void *context, int fd, const struct sockaddr_storage *address)
{
    struct dial_back *dial = context;
    const struct tls_module *module = dial->config.module;
    struct error err = ERROR_INIT;
    make_room(dial);
    struct tls_session *session = module->create(dial->party, fd, &err);
    if (session == NULL) {
        warn(dial, STRANGERS, mem_strdup(err.text));
        close(fd);
        return;
    }
    struct dial_back_guest *guest =
        MEM_NEW((struct dial_back_guest){.dial = dial, .end = {module, session, fd}});
    dial_address_text(address, guest->peer, sizeof(guest->peer));
    tcp_options_set(fd, dial->config.dead_after_ms);
    TAILQ_INSERT_TAIL(&dial->guests, guest, place);
    dial->guest_count++;
    guest->watch = loop_fd_create(dial->config.loop, fd, guest_ready, guest);
    guest->deadline = loop_timer_create(dial->config.loop, guest_late, guest);
    loop_timer_set(guest->deadline, DIAL_BACK_HANDSHAKE_MS);
    loop_fd_watch(guest->watch, LOOP_READ);
}

/* A callback may forget any claim, so each search starts from the beginning. */
static void fail_all(struct dial_back *dial, const char *cause)
{
    struct dial_back_claim *claim = find_claim(dial, DIAL_BACK_ANY);
    for (; claim != NULL; claim = find_claim(dial, DIAL_BACK_ANY))
        claim_fail(claim, cause);
}

static void full(void *context, const char *cause, bool for_long)
{
    struct dial_back *dial = context;
    if (close_guests(dial, NULL))
        tell(dial, LOG_INFO,
             mem_printf("closed connections that have not identified themselves: %s", cause));
    else if (for_long)
        fail_all(dial, cause);
    else
        warn(dial, AGENTS,
             mem_printf("cannot accept an agent: %s; raise the limit of open files (ulimit -n)",
                        cause));
}

static int make_key(struct dial_back *dial, struct error *err)
{
    struct tls_party_config party = {.is_server = true};
    if (dial->config.key != NULL)
        memcpy(party.key, dial->config.key, sizeof(party.key));
    else if (getrandom(party.key, sizeof(party.key), 0) != (ssize_t)sizeof(party.key))
        return error_errno(err, errno, "cannot create a key for the job");
    if (dial->config.key == NULL)
        text_hex(party.key, sizeof(party.key), dial->key);
    dial->config.key = NULL; /* it was borrowed for this */
    dial->party = dial->config.module->party_create(&party, err);
    explicit_bzero(party.key, sizeof(party.key));
    return dial->party == NULL ? -1 : 0;
}

static int open_port(struct dial_back *dial, struct error *err)
{
    static const struct listener_ops ops = {.come = guest_create, .full = full};
    int port = dial->config.port;
    dial->listener = listener_create_at(dial->config.loop, port, &ops, dial);
    if (dial->listener != NULL)
        return 0;
    if (port == 0)
        return error_errno(err, errno, "cannot open a port for agents to dial back to");
    return error_errno(
        err, errno,
        "cannot open port %d, where agents dial in (--dial-port, or the address of a "
        "torchrun line: has another copy node rank 0, too?)",
        port);
}

struct dial_back *dial_back_create(const struct dial_back_config *config, struct error *err)
{
    struct dial_back *dial = MEM_NEW((struct dial_back){.config = *config});
    TAILQ_INIT(&dial->guests);
    TAILQ_INIT(&dial->claims);
    if (make_key(dial, err) == 0 && open_port(dial, err) == 0)
        return dial;
    dial_back_destroy(dial);
    return NULL;
}

void dial_back_destroy(struct dial_back *dial)
{
    if (dial == NULL)
        return;
    close_guests(dial, NULL);
    listener_destroy(dial->listener);
    dial->config.module->party_destroy(dial->party);
    explicit_bzero(dial->key, sizeof(dial->key));
    strv_destroy(&dial->former);
    for (int i = 0; i < SUBJECTS; i++)
        strv_destroy(&dial->warned[i]);
    free(dial);
}

int dial_back_port(const struct dial_back *dial)
{
    return (int)listener_port(dial->listener);
}

const char *dial_back_key(const struct dial_back *dial)
{
    return dial->key;
}

struct dial_back_claim *dial_back_expect(struct dial_back *dial, const char *name,
                                         const struct dial_back_events *events, void *context)
{
    struct dial_back_claim *claim = MEM_NEW((struct dial_back_claim){
        .dial = dial, .name = mem_strdup(name), .events = events, .context = context});
    TAILQ_INSERT_TAIL(&dial->claims, claim, place);
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
    struct dial_back *dial = claim->dial;
    TAILQ_REMOVE(&dial->claims, claim, place);
    if (dial->config.agents_return && !strv_has(&dial->former, claim->name))
        strv_add(&dial->former, claim->name);
    dial->gave_up |= !claim->has_come;
    tls_stream_destroy(claim->stream);
    free(claim->name);
    free(claim);
}
