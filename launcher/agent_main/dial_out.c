/* SPDX-License-Identifier: Apache-2.0 */
#include "agent_main/dial_out.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/dial_ends.h"
#include "io/listener.h"

enum {
    SHAKE_MS = 5000, /* limit for TLS and the welcome, at one address */
    ROUND_MS = 8000, /* limit for one round over all addresses */
    AGAIN_MS = 500,  /* pause between two rounds */
    AGAIN_MAX_MS = 2000,
    WHYS_MAX = 512,
    NEWS_MAX = 20,      /* lines about why an agent of a user has to wait */
    STRANGER_PART = 10, /* of its time it goes to an hvdrun of another job: that may be ending */
};

_Static_assert(DIAL_LOOKUP_MAX <= DIAL_OUT_ADDRESSES_MAX, "a look-up fits");

struct attempt {
    const char *address;
    int fd; /* -1: not yet begun, or has failed */
    bool begun;
    char why[128];
};

struct dialing {
    const struct dial_out *dial;
    const struct tls_module *module;
    struct tls_party *party;
    struct strv found; /* where dial->server is in this round */
    struct attempt attempts[DIAL_OUT_ADDRESSES_MAX];
    size_t count;
    int64_t deadline_ms, again_ms;
    int64_t stranger_ms;  /* since then, an hvdrun without the key answers; 0: none does */
    bool stranger;        /* in this round */
    struct error look_up; /* why there is no address */
    struct error told;    /* the last reason that was said */
    int news;
    char refused[DIAL_BACK_LINE_MAX]; /* the driver's reason; "": it has not refused this agent */
    char version[DIAL_BACK_LINE_MAX]; /* of hvdrun */
};

/* The environment */

/* Returns a copy of the variable, and overwrites it in the environment. NULL: not set. */
static char *take(const char *name)
{
    char *value = getenv(name);
    char *copy = value == NULL ? NULL : mem_strdup(value);
    if (value != NULL)
        explicit_bzero(value, strlen(value));
    unsetenv(name);
    return copy;
}

static int read_key(const char *hex, uint8_t *key)
{
    if (strlen(hex) != 2 * TLS_KEY_SIZE || strspn(hex, "0123456789abcdef") != 2 * TLS_KEY_SIZE)
        return -1;
    for (size_t i = 0; i < TLS_KEY_SIZE; i++) {
        char pair[] = {hex[2 * i], hex[2 * i + 1], '\0'};
        key[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return 0;
}

/* The address of the host where srun runs, as Slurm itself uses it, goes before all others. */
static void add_launch_address(struct strv *addresses, const char *list)
{
    const char *launch = getenv("SLURM_LAUNCH_NODE_IPADDR");
    const char *end = strchrnul(list, ',');
    const char *port = end;
    while (port > list && *port != ':')
        port--;
    if (launch != NULL && launch[0] != '\0' && strchr(launch, ',') == NULL && *port == ':')
        strv_printf(addresses, strchr(launch, ':') == NULL ? "%s%.*s" : "[%s]%.*s", launch,
                    (int)(end - port), port);
}

int dial_out_read(struct dial_out *dial, struct error *err)
{
    char *list AUTO_FREE = take(DIAL_BACK_ENV_DIAL);
    char *key AUTO_FREE = take(DIAL_BACK_ENV_KEY);
    char *job AUTO_FREE = take(DIAL_BACK_ENV_JOB);
    const char *node = getenv("SLURMD_NODENAME");
    int result = -1;
    *dial = (struct dial_out){.node = mem_strdup(node == NULL ? "?" : node),
                              .limit_ms = DIAL_OUT_LIMIT_MS};
    if (list == NULL || key == NULL || job == NULL)
        error_set(err, "the environment has no address of hvdrun: hvdrun starts hvdrun-agent with "
                       "srun; do not start it yourself");
    else if (node == NULL || node[0] == '\0')
        error_set(err, "SLURMD_NODENAME is not set: was this started by Slurm?");
    else if (read_key(key, dial->key) < 0)
        error_set(err, DIAL_BACK_ENV_KEY " is not a key: srun did not pass on the environment");
    else
        result = 0;
    if (key != NULL)
        explicit_bzero(key, strlen(key));
    if (result < 0)
        return -1;
    add_launch_address(&dial->addresses, list);
    strv_split(&dial->addresses, list, ",");
    while (dial->addresses.count > DIAL_OUT_ADDRESSES_MAX)
        mem_free_at(&dial->addresses.items[--dial->addresses.count]);
    dial->identity = mem_printf(DIAL_BACK_IDENTITY ":%s:%s", job, node);
    return 0;
}

void dial_out_clear(struct dial_out *dial)
{
    strv_destroy(&dial->addresses);
    free(dial->server);
    free(dial->node);
    free(dial->identity);
    free(dial->line);
    explicit_bzero(dial, sizeof(*dial));
}

/* One address */

static void give_up(struct attempt *attempt, const char *why)
{
    fd_close(&attempt->fd);
    snprintf(attempt->why, sizeof(attempt->why), "%.*s", (int)sizeof(attempt->why) - 1, why);
}

/* "[host]:port" or "host:port", numeric. */
static struct addrinfo *parse(const char *address)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    const char *colon = strrchr(address, ':');
    struct addrinfo *found = NULL;
    if (colon == NULL)
        return NULL;
    bool bracketed = address[0] == '[' && colon > address + 1 && colon[-1] == ']';
    char *host AUTO_FREE =
        mem_strndup(address + bracketed, (size_t)(colon - address) - 2 * (size_t)bracketed);
    return getaddrinfo(host, colon + 1, &hints, &found) == 0 ? found : NULL;
}

static void begin(struct attempt *attempt)
{
    attempt->begun = true;
    struct addrinfo *to = parse(attempt->address);
    if (to == NULL) {
        give_up(attempt, "no such address");
        return;
    }
    attempt->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (attempt->fd < 0 ||
        (connect(attempt->fd, to->ai_addr, to->ai_addrlen) < 0 && errno != EINPROGRESS))
        give_up(attempt, strerror(errno));
    freeaddrinfo(to);
}

/* The socket is writable, or broken. */
static bool has_connected(struct attempt *attempt)
{
    int errnum = fd_connect_errno(attempt->fd);
    if (errnum != 0)
        give_up(attempt, strerror(errnum));
    return errnum == 0;
}

/* false: the time is over. */
static bool wait_for(int fd, int wants, int64_t until_ms)
{
    struct pollfd one = {.fd = fd};
    one.events = (short)(((wants & TLS_WANT_READ) != 0 ? POLLIN : 0) |
                         ((wants & TLS_WANT_WRITE) != 0 ? POLLOUT : 0));
    for (;;) {
        int64_t left = until_ms - clock_mono_ms();
        if (left <= 0)
            return false;
        if (poll(&one, 1, (int)left) > 0)
            return true;
    }
}

static bool shake_hands(struct attempt *attempt, const struct tls_module *module,
                        struct tls_session *session, int64_t until_ms, bool *stranger)
{
    for (;;) {
        switch (module->advance(session)) {
        case TLS_OPEN: return true;
        case TLS_FAILED:
            *stranger = *stranger || module->has_wrong_key(session);
            give_up(attempt, module->problem(session));
            return false;
        case TLS_HANDSHAKE: break;
        }
        if (!wait_for(attempt->fd, module->wants(session, TLS_SHAKING), until_ms)) {
            give_up(attempt, "a program there accepts the connection but does not answer");
            return false;
        }
    }
}

/* Reads the driver's first line one byte at a time, because all bytes after it belong to the link.
 */
static bool read_line(struct attempt *attempt, const struct tls_module *module,
                      struct tls_session *session, int64_t until_ms, char *line)
{
    size_t length = 0;
    while (length < DIAL_BACK_LINE_MAX - 1) {
        ssize_t got = module->read(session, line + length, 1);
        if (got == 1 && line[length] == '\n') {
            line[length] = '\0';
            return true;
        }
        length += got == 1;
        if (got == 1 || (got < 0 && errno == EAGAIN &&
                         wait_for(attempt->fd, module->wants(session, TLS_READING), until_ms)))
            continue;
        break;
    }
    give_up(attempt, module->problem(session)[0] != '\0' ? module->problem(session)
                                                         : "hvdrun closed the connection");
    return false;
}

/* The driver has the key. True: the agent is in. */
static bool take_answer(struct dialing *dialing, const char *line)
{
    const char *version = text_line_after(line, DIAL_BACK_WELCOME);
    const char *wait = text_line_after(line, DIAL_BACK_WAIT);
    const char *why = wait != NULL ? wait : text_line_after(line, DIAL_BACK_REFUSED);
    if (wait != NULL) /* as long as it says so */
        dialing->deadline_ms = clock_mono_ms() + dialing->dial->limit_ms;
    if (why != NULL)
        snprintf(dialing->refused, sizeof(dialing->refused), "%s", why);
    else if (version != NULL)
        snprintf(dialing->version, sizeof(dialing->version), "%s", version);
    return version != NULL;
}

/* Does TLS and reads the driver's answer. On success, `end` takes the attempt's descriptor. */
static bool come_in(struct dialing *dialing, struct attempt *attempt, struct tls_end *end)
{
    const struct tls_module *module = dialing->module;
    char line[DIAL_BACK_LINE_MAX];
    struct error err = ERROR_INIT;
    int64_t until = clock_mono_ms() + SHAKE_MS;
    if (until > dialing->deadline_ms)
        until = dialing->deadline_ms;
    tcp_options_set(attempt->fd, 0); /* a suspended driver does not read; the link has heartbeats */
    struct tls_session *session = module->create(dialing->party, attempt->fd, &err);
    if (session == NULL) {
        give_up(attempt, err.text);
        return false;
    }
    if (shake_hands(attempt, module, session, until, &dialing->stranger) &&
        read_line(attempt, module, session, until, line)) {
        if (take_answer(dialing, line)) {
            *end = (struct tls_end){module, session, attempt->fd};
            attempt->fd = -1;
            return true;
        }
        give_up(attempt, "it is not the hvdrun process of this job");
    }
    module->destroy(session);
    return false;
}

/* All addresses */

static void begin_next(struct dialing *dialing)
{
    for (size_t i = 0; i < dialing->count; i++) {
        if (!dialing->attempts[i].begun) {
            begin(&dialing->attempts[i]);
            return;
        }
    }
}

static bool is_under_way(const struct dialing *dialing)
{
    for (size_t i = 0; i < dialing->count; i++) {
        if (!dialing->attempts[i].begun || dialing->attempts[i].fd >= 0)
            return true;
    }
    return false;
}

static bool one_round(struct dialing *dialing, struct tls_end *end)
{
    int64_t until = clock_mono_ms() + ROUND_MS;
    if (until > dialing->deadline_ms)
        until = dialing->deadline_ms;
    for (size_t i = 0; i < dialing->count; i++)
        dialing->attempts[i].begun = false;
    dialing->refused[0] = '\0';
    dialing->stranger = false;
    while (is_under_way(dialing) && clock_mono_ms() < until && dialing->refused[0] == '\0') {
        struct pollfd fds[DIAL_OUT_ADDRESSES_MAX];
        begin_next(dialing);
        for (size_t i = 0; i < dialing->count; i++)
            fds[i] = (struct pollfd){.fd = dialing->attempts[i].fd, .events = POLLOUT};
        poll(fds, (nfds_t)dialing->count, DIAL_OUT_STAGGER_MS);
        for (size_t i = 0; i < dialing->count; i++) {
            struct attempt *attempt = &dialing->attempts[i];
            if (fds[i].revents != 0 && has_connected(attempt) && come_in(dialing, attempt, end))
                return true;
        }
    }
    for (size_t i = 0; i < dialing->count; i++) {
        if (dialing->attempts[i].fd >= 0)
            give_up(&dialing->attempts[i], "no answer");
    }
    return false;
}

/* hvdrun sees it, too, and ends the connection without a word to this agent. */
static void say_version(const struct dialing *dialing)
{
    if (dialing->dial->server != NULL && strcmp(dialing->version, HVDRUN_VERSION) != 0)
        fprintf(stderr,
                "hvdrun-agent: %s: this agent is hvdrun %s, but it is %s at %s; install the same "
                "version on both\n",
                dialing->dial->node, HVDRUN_VERSION, dialing->version, dialing->dial->server);
}

static void hang_up(struct dialing *dialing)
{
    for (size_t i = 0; i < dialing->count; i++)
        fd_close(&dialing->attempts[i].fd);
    strv_destroy(&dialing->found);
    dialing->module->party_destroy(dialing->party);
}

static int explain(const struct dialing *dialing, struct error *err)
{
    AUTO_BUF struct buf whys = BUF_INIT(WHYS_MAX);
    const char *server = dialing->dial->server;
    if (dialing->refused[0] != '\0')
        return error_set(err, "hvdrun refused the connection: %s", dialing->refused);
    if (dialing->count == 0)
        return error_set(err, "%s", dialing->look_up.text);
    for (size_t i = 0; i < dialing->count; i++)
        buf_printf(&whys, "%s%s: %s", i > 0 ? "; " : "", dialing->attempts[i].address,
                   dialing->attempts[i].why);
    if (dialing->stranger && server != NULL)
        return error_set(err,
                         "the hvdrun at %s is of another job (%s): give both the same secret and "
                         "--dial-id (for torchrun, --rdzv-id), or end that job",
                         server, buf_text(&whys));
    if (server != NULL)
        return error_set(err,
                         "cannot reach hvdrun (%s): does it run at %s, with this secret and "
                         "--dial-id (for torchrun, --rdzv-id)?",
                         buf_text(&whys), server);
    return error_set(err,
                     "cannot reach hvdrun (%s): nodes must be able to connect to any port of the "
                     "node where hvdrun runs",
                     buf_text(&whys));
}

/* Addresses may change between two rounds: a container that is created again has another one. */
static void find_addresses(struct dialing *dialing)
{
    const struct dial_out *dial = dialing->dial;
    const struct strv *from = &dial->addresses;
    if (dial->server != NULL) {
        int64_t left = dialing->deadline_ms - clock_mono_ms();
        strv_destroy(&dialing->found);
        dialing->look_up = (struct error)ERROR_INIT;
        dial_lookup(dial->server, left > ROUND_MS ? ROUND_MS : left, &dialing->found,
                    &dialing->look_up);
        from = &dialing->found;
    }
    dialing->count = from->count;
    for (size_t i = 0; i < dialing->count; i++)
        dialing->attempts[i] = (struct attempt){.address = from->items[i], .fd = -1};
}

/* The log of a pod shows at once what is wrong, and not only at the end. */
static void say_why(struct dialing *dialing)
{
    struct error err = ERROR_INIT;
    explain(dialing, &err);
    if (dialing->news >= NEWS_MAX || strcmp(err.text, dialing->told.text) == 0)
        return;
    dialing->told = err;
    dialing->news++;
    fprintf(stderr, "hvdrun-agent: %s: waiting for hvdrun: %s\n", dialing->dial->node, err.text);
}

/* An hvdrun of another job answers, and has done so for a while. */
static bool is_with_strangers(struct dialing *dialing)
{
    int64_t now = clock_mono_ms();
    if (!dialing->stranger)
        dialing->stranger_ms = 0;
    else if (dialing->stranger_ms == 0)
        dialing->stranger_ms = now;
    return dialing->stranger &&
           now - dialing->stranger_ms >= dialing->dial->limit_ms / STRANGER_PART;
}

/* false: the time is over, or there is no point in another round. */
static bool wait_for_next(struct dialing *dialing)
{
    bool is_user = dialing->dial->server != NULL;
    if ((!is_user && dialing->refused[0] != '\0') || (is_user && is_with_strangers(dialing)) ||
        clock_mono_ms() + dialing->again_ms >= dialing->deadline_ms)
        return false;
    if (is_user)
        say_why(dialing);
    poll(NULL, 0, (int)dialing->again_ms);
    if (is_user && dialing->again_ms < AGAIN_MAX_MS)
        dialing->again_ms *= 2;
    return true;
}

int dial_out_connect(const struct dial_out *dial, const struct tls_module *module,
                     struct tls_end *end, struct error *err)
{
    struct tls_party_config config = {.identity = dial->identity};
    struct dialing dialing = {.dial = dial,
                              .module = module,
                              .deadline_ms = clock_mono_ms() + dial->limit_ms,
                              .again_ms = AGAIN_MS,
                              .look_up = ERROR_INIT,
                              .told = ERROR_INIT};
    bool is_in;
    memcpy(config.key, dial->key, sizeof(config.key));
    dialing.party = module->party_create(&config, err);
    explicit_bzero(config.key, sizeof(config.key));
    if (dialing.party == NULL)
        return -1;
    do {
        find_addresses(&dialing);
        is_in = one_round(&dialing, end);
    } while (!is_in && wait_for_next(&dialing));
    if (!is_in)
        explain(&dialing, err);
    else if (dialing.news > 0)
        fprintf(stderr, "hvdrun-agent: %s: connected to hvdrun\n", dial->node);
    if (is_in)
        say_version(&dialing);
    hang_up(&dialing);
    return is_in ? 0 : -1;
}
