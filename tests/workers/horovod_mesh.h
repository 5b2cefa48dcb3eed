/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous of a Horovod worker with the Gloo controller: six contexts, each with addresses
 * that are stored in and fetched from the launcher's key-value store in the observed order, and a
 * real TCP mesh between the ranks of each, so that a wrong or stale address makes it fail as the
 * real one would. Written from observed traffic; no code of Horovod is in it.
 */
#pragma once

#include "horovod_gather.h"

#include <ifaddrs.h>
#include <sys/resource.h>

enum {
    ENTRY_SIZE = 136, /* bytes of a blob per peer */
    MAGIC = 0x48564452,
    POLL_MS = 10,
    LISTEN_BACKLOG = 4096,
    CONTEXTS = 6,
    PEER_TIMEOUTS =
        5, /* so many time-outs pass until a peer that has stored its address is given up */
};

/* One peer's part of a blob. The filling makes a cut or shifted blob visible. */
struct entry {
    uint32_t magic, init, from, to;
    uint32_t address; /* network byte order */
    uint16_t port;    /* network byte order */
    uint16_t zero;
    uint64_t nonce;
    unsigned char filling[ENTRY_SIZE - 32];
};
_Static_assert(sizeof(struct entry) == ENTRY_SIZE, "an entry has a fixed size");

/* The first words on a mesh connection, from the connecting side. */
struct greeting {
    uint32_t magic, init, from, to;
    uint64_t nonce; /* the one in the entry that led here */
};

struct worker {
    struct place global, local, cross;
    const char *hostname;
    struct client client;
    int64_t timeout_ms;
    uint32_t init;      /* stored with each address: the same in all workers of one init */
    bool old;           /* a Gloo that does not say who it is before it stores its address */
    int die_before_put; /* this rank kills itself before its first address is stored; -1: none */
};

static int64_t need_int(const char *name)
{
    const char *text = getenv(name);
    if (text == NULL) {
        dprintf(2, "worker: %s is not set\n", name);
        exit(2);
    }
    return to_number(text);
}

static struct place need_place(const char *kind)
{
    char rank[64], size[64];
    snprintf(rank, sizeof(rank), "HOROVOD_%sRANK", kind);
    snprintf(size, sizeof(size), "HOROVOD_%sSIZE", kind);
    struct place place = {(int)need_int(rank), (int)need_int(size)};
    if (place.size < 1 || place.rank < 0 || place.rank >= place.size) {
        dprintf(2, "worker: %s=%d does not fit %s=%d\n", rank, place.rank, size, place.size);
        exit(2);
    }
    return place;
}

/* The IPv4 address of the interface that HOROVOD_GLOO_IFACE names, as Gloo takes it. */
static struct in_addr own_address(const struct worker *worker)
{
    const char *name = getenv("HOROVOD_GLOO_IFACE");
    struct ifaddrs *list = NULL;
    struct sockaddr_in found = {.sin_family = AF_UNSPEC};
    if (name == NULL || getifaddrs(&list) < 0)
        violation(worker->global.rank, "no interface is named by HOROVOD_GLOO_IFACE");
    for (const struct ifaddrs *at = list; at != NULL && found.sin_family != AF_INET;
         at = at->ifa_next) {
        if (at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET &&
            strcmp(at->ifa_name, name) == 0)
            memcpy(&found, at->ifa_addr, sizeof(found));
    }
    freeifaddrs(list);
    if (found.sin_family != AF_INET)
        violation(worker->global.rank, "HOROVOD_GLOO_IFACE names %s, which has no address", name);
    return found.sin_addr;
}

static void context_listen(struct worker *worker, struct context *context)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t length = sizeof(context->address);
    any.sin_addr = own_address(worker);
    context->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (context->listener < 0 ||
        bind(context->listener, (struct sockaddr *)&any, sizeof(any)) < 0 ||
        listen(context->listener, LISTEN_BACKLOG) < 0 ||
        getsockname(context->listener, (struct sockaddr *)&context->address, &length) < 0)
        violation(worker->global.rank, "cannot listen: %s", strerror(errno));
    context->nonce = ((uint64_t)getpid() << 32) ^ (uint64_t)now_ms() * 2654435761u;
}

/* Peers come in rank order, without me. */
static size_t entry_index(int mine, int other)
{
    return (size_t)(other < mine ? other : other - 1);
}

static struct entry *make_blob(const struct worker *worker, const struct context *context)
{
    struct entry *blob = allocate((size_t)(context->place.size - 1) * ENTRY_SIZE);
    for (int to = 0; to < context->place.size; to++) {
        if (to == context->place.rank)
            continue;
        struct entry *entry = &blob[entry_index(context->place.rank, to)];
        *entry = (struct entry){.magic = MAGIC,
                                .init = worker->init,
                                .from = (uint32_t)context->place.rank,
                                .to = (uint32_t)to,
                                .address = context->address.sin_addr.s_addr,
                                .port = context->address.sin_port,
                                .nonce = context->nonce + (uint64_t)to};
        memset(entry->filling, to ^ context->place.rank, sizeof(entry->filling));
    }
    return blob;
}

static void check_entry(const struct worker *worker, const struct context *context, int from,
                        const struct entry *entry)
{
    bool filled = true;
    for (size_t i = 0; i < sizeof(entry->filling); i++)
        filled = filled && entry->filling[i] == (unsigned char)(from ^ context->place.rank);
    if (entry->magic != MAGIC || !filled)
        violation(worker->global.rank, "/%s/%d is not what was stored", context->scope, from);
    if (entry->init != worker->init)
        violation(worker->global.rank, "/%s/%d is stale: of init %u, this is init %u",
                  context->scope, from, entry->init, worker->init);
    if ((int)entry->from != from || (int)entry->to != context->place.rank)
        violation(worker->global.rank, "/%s/%d is for rank %u from rank %u", context->scope, from,
                  entry->to, entry->from);
}

static void put(struct worker *worker, const struct context *context, const char *key,
                const void *body, size_t length)
{
    free(client_request(&worker->client, "PUT", context->scope, key, body, length).body);
}

/* Polls until the address is there, and then asks once more, as Gloo does. */
static struct entry fetch_entry(struct worker *worker, const struct context *context, int from)
{
    char key[16];
    snprintf(key, sizeof(key), "%d", from);
    int64_t deadline = now_ms() + worker->timeout_ms;
    struct answer answer;
    for (;;) {
        answer = client_request(&worker->client, "GET", context->scope, key, NULL, 0);
        free(answer.body);
        if (answer.status == 200)
            break;
        if (now_ms() >= deadline)
            give_up(worker->global.rank, "timed out waiting for /%s/%s", context->scope, key);
        pause_ms(POLL_MS);
    }
    answer = client_request(&worker->client, "GET", context->scope, key, NULL, 0);
    if (answer.status != 200)
        violation(worker->global.rank, "/%s/%s was there and is gone", context->scope, key);
    if (answer.length != (size_t)(context->place.size - 1) * ENTRY_SIZE)
        violation(worker->global.rank, "/%s/%s has %zu bytes, not %d", context->scope, key,
                  answer.length, (context->place.size - 1) * ENTRY_SIZE);
    struct entry entry;
    memcpy(&entry, answer.body + entry_index(from, context->place.rank) * ENTRY_SIZE, ENTRY_SIZE);
    free(answer.body);
    check_entry(worker, context, from, &entry);
    return entry;
}

/* The connection with the greeting sent; -1: the peer does not take it. */
static int try_connect(struct worker *worker, const struct sockaddr_in *address,
                       const struct greeting *greeting)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tune(fd, worker->timeout_ms);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 &&
        send(fd, greeting, sizeof(*greeting), MSG_NOSIGNAL) == (ssize_t)sizeof(*greeting))
        return fd;
    close(fd);
    return -1;
}

/* The higher rank connects, and tries again for a long time when the peer has gone. */
static void connect_to(struct worker *worker, struct context *context, int to,
                       const struct entry *entry)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = entry->port};
    address.sin_addr.s_addr = entry->address;
    struct greeting greeting = {MAGIC, worker->init, (uint32_t)context->place.rank, (uint32_t)to,
                                entry->nonce};
    int64_t deadline = now_ms() + PEER_TIMEOUTS * worker->timeout_ms;
    int fd = try_connect(worker, &address, &greeting);
    while (fd < 0) {
        if (now_ms() >= deadline)
            give_up(worker->global.rank, "cannot connect to rank %d of %s", to, context->scope);
        pause_ms(POLL_MS);
        fd = try_connect(worker, &address, &greeting);
    }
    context->peers[to] = fd;
}

/* Takes connections until the one of this peer is there; others that come first are kept. */
static void accept_from(struct worker *worker, struct context *context, int from)
{
    int64_t deadline = now_ms() + PEER_TIMEOUTS * worker->timeout_ms;
    while (context->peers[from] < 0) {
        struct pollfd watch = {.fd = context->listener, .events = POLLIN};
        int64_t left = deadline - now_ms();
        if (poll(&watch, 1, left > 0 ? (int)left : 0) <= 0)
            give_up(worker->global.rank, "rank %d of %s did not connect", from, context->scope);
        int fd = accept4(context->listener, NULL, NULL, SOCK_CLOEXEC);
        struct greeting greeting;
        if (fd < 0 || !read_exact(fd, &greeting, sizeof(greeting), worker->timeout_ms))
            give_up(worker->global.rank, "no greeting in %s", context->scope);
        if (greeting.magic != MAGIC || greeting.init != worker->init ||
            (int)greeting.to != context->place.rank || (int)greeting.from <= context->place.rank ||
            (int)greeting.from >= context->place.size || context->peers[greeting.from] >= 0 ||
            greeting.nonce != context->nonce + greeting.from)
            violation(worker->global.rank, "a stranger connected in %s", context->scope);
        tune(fd, worker->timeout_ms);
        context->peers[greeting.from] = fd;
    }
}

/* Steps 1 to 3 of a context: say who I am, look at those before me, store my addresses. */
static void context_announce(struct worker *worker, struct context *context)
{
    char key[32], name[256] = "";
    gethostname(name, sizeof(name) - 1);
    snprintf(key, sizeof(key), "rank_%d", context->place.rank);
    if (!worker->old)
        put(worker, context, key, name, strlen(name));
    for (int i = 0; i < context->place.rank && !worker->old; i++) {
        snprintf(key, sizeof(key), "rank_%d", i);
        free(client_request(&worker->client, "GET", context->scope, key, NULL, 0).body);
    }
    if (worker->die_before_put == worker->global.rank)
        raise(SIGKILL);
    struct entry *blob = make_blob(worker, context);
    snprintf(key, sizeof(key), "%d", context->place.rank);
    put(worker, context, key, blob, (size_t)(context->place.size - 1) * ENTRY_SIZE);
    free(blob);
}

static void context_open(struct worker *worker, struct context *context, const char *scope,
                         struct place place)
{
    char key[16];
    *context = (struct context){.place = place};
    snprintf(context->scope, sizeof(context->scope), "%s", scope);
    context->peers = allocate((size_t)place.size * sizeof(int));
    for (int i = 0; i < place.size; i++)
        context->peers[i] = -1;
    context_listen(worker, context);
    context_announce(worker, context);
    for (int i = 0; i < place.size; i++) {
        if (i == place.rank)
            continue;
        struct entry entry = fetch_entry(worker, context, i);
        if (i < place.rank)
            connect_to(worker, context, i, &entry);
        else
            accept_from(worker, context, i);
    }
    int64_t sum;
    if (!exchange(context, 1, PEER_TIMEOUTS * worker->timeout_ms, &sum) || sum != place.size)
        give_up(worker->global.rank, "the barrier of %s failed", context->scope);
    snprintf(key, sizeof(key), "%d", place.rank);
    free(client_request(&worker->client, "DELETE", context->scope, key, NULL, 0).body);
}

static void context_close(struct context *context)
{
    for (int i = 0; i < context->place.size; i++) {
        if (context->peers[i] >= 0)
            close(context->peers[i]);
    }
    close(context->listener);
    free(context->peers);
}

/* The six contexts of one init, each in its scope. */
static void contexts_open(struct worker *worker, struct context contexts[CONTEXTS])
{
    char local[300], cross[64], scope[400];
    snprintf(local, sizeof(local), "local_%s", worker->hostname);
    snprintf(cross, sizeof(cross), "cross_%d", worker->local.rank);
    const char *const names[3] = {"global", local, cross};
    const struct place places[3] = {worker->global, worker->local, worker->cross};
    for (int i = 0; i < CONTEXTS; i++) {
        /* The hash stays the same from init to init, so a stale address would be found. */
        snprintf(scope, sizeof(scope), i < 3 ? "%s" : "%s_process_set_hash_5f3a9c01", names[i % 3]);
        context_open(worker, &contexts[i], scope, places[i % 3]);
    }
}

static void contexts_close(struct context contexts[CONTEXTS])
{
    for (int i = 0; i < CONTEXTS; i++)
        context_close(&contexts[i]);
}

/* What the environment says of this worker. */
static void worker_read(struct worker *worker, const char *host, const char *port)
{
    *worker = (struct worker){.global = need_place(""),
                              .local = need_place("LOCAL_"),
                              .cross = need_place("CROSS_"),
                              .hostname = getenv("HOROVOD_HOSTNAME"),
                              .timeout_ms = env_int("HOROVOD_GLOO_TIMEOUT_SECONDS", 30) * 1000LL,
                              .die_before_put = -1};
    if (worker->hostname == NULL) {
        dprintf(2, "worker: HOROVOD_HOSTNAME is not set\n");
        exit(2);
    }
    client_init(&worker->client, worker->global.rank, host, port);
}

/* What a Python program does before it speaks to the launcher for the first time:
 *   --import-ms LOW[:HIGH]  takes so long: LOW in rank 0, HIGH in the last rank, evenly between
 *   --import-until FILE     says "imports ..." and takes until the file exists */
static void import_modules(const struct worker *worker, int argc, char **argv)
{
    const char *range = option(argc, argv, "--import-ms", "0"), *colon = strchr(range, ':');
    const char *file = option(argc, argv, "--import-until", NULL);
    const struct place *place = &worker->global;
    long low = strtol(range, NULL, 10), high = colon != NULL ? to_number(colon + 1) : low;
    pause_ms(low + (high - low) * place->rank / (place->size > 1 ? place->size - 1 : 1));
    if (file == NULL)
        return;
    dprintf(1, "imports rank %d/%d host %s pid %d\n", place->rank, place->size, worker->hostname,
            getpid());
    wait_for_file(file);
}

/* A mesh needs a descriptor per peer and context. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}
