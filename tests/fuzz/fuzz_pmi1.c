/* SPDX-License-Identifier: Apache-2.0 */
/* The PMI-1 engine: a byte says which of three ranks (or the other nodes, or a name's answer)
 * speaks, then what it says up to a zero. */
#include "base/strv.h"
#include "fuzz.h"
#include "pmi1/engine.h"
#include "pmi1/request.h"

struct room {
    struct pmi1_engine *engine;
    int barriers; /* that wait for the other nodes */
    int owed[6];  /* by rank: answers to requests to spawn */
};

static void on_send(void *context, int rank, const char *bytes, size_t length)
{
    static const char answer[] = "cmd=spawn_result ";
    struct room *room = context;
    FUZZ_CHECK(rank >= 0 && rank < 6 && length > 0 && bytes[length - 1] == '\n');
    if (length > strlen(answer) && memcmp(bytes, answer, strlen(answer)) == 0)
        FUZZ_CHECK(room->owed[rank]-- == 1);
}

static void on_abort(void *context, int rank, int code, const char *text)
{
    (void)context;
    (void)code;
    FUZZ_CHECK(rank >= 0 && rank < 6 && text != NULL);
}

static void on_barrier(void *context, const char *bytes, size_t length)
{
    struct room *room = context;
    FUZZ_CHECK(room->barriers == 0 && (length == 0 || bytes != NULL));
    room->barriers++;
}

static void on_name(void *context, int rank, enum pmi1_name_request request, const char *service,
                    const char *port)
{
    (void)context;
    (void)rank;
    FUZZ_CHECK(service != NULL && (port != NULL) == (request == PMI1_PUBLISH));
}

static void on_spawn(void *context, int rank, const struct pmi1_spawn *request)
{
    struct room *room = context;
    FUZZ_CHECK(rank == 0 || rank == 2 || rank == 5);
    FUZZ_CHECK(room->owed[rank]++ == 0);
    FUZZ_CHECK(request->app_count > 0 && request->preput.count % 2 == 0);
    FUZZ_CHECK(request->preput.count <= (size_t)2 * SPAWN_PREPUT_MAX);
    for (size_t i = 0; i < request->app_count; i++)
        FUZZ_CHECK(request->apps[i].argv.count > 0 && request->apps[i].np >= 0);
}

static void on_spawn_refused(void *context, int rank, const char *what)
{
    struct room *room = context;
    FUZZ_CHECK((rank == 0 || rank == 2 || rank == 5) && room->owed[rank]++ == 0);
    FUZZ_CHECK(what != NULL && *what != '\0');
}

static void speak(struct room *room, uint8_t who, const char *bytes, size_t length)
{
    static const int ranks[] = {0, 2, 5};
    struct error err = ERROR_INIT;
    if (who < 0xf0) {
        int rank = ranks[who % 3];
        fuzz_check_error(pmi1_receive(room->engine, rank, bytes, length, &err), &err);
        FUZZ_CHECK(pmi1_rank_state(room->engine, rank) <= PMI1_BROKEN);
    } else if (who < 0xf8) {
        room->barriers = 0;
        fuzz_check_error(pmi1_barrier_out(room->engine, bytes, length, &err), &err);
    } else if (who == 0xff) {
        int rank = ranks[length % 3];
        if (pmi1_spawn_unended(room->engine, rank, &err) < 0)
            FUZZ_CHECK(room->owed[rank] == 1 && err.text[0] != '\0');
    } else {
        char *port AUTO_FREE = fuzz_text((const uint8_t *)bytes, length);
        pmi1_name_reply(room->engine, ranks[who % 3], (enum pmi1_name_request)(who % 3),
                        length == 0 ? NULL : port);
        pmi1_spawn_reply(room->engine, ranks[who % 3], length == 0);
    }
}

FUZZ_TARGET
{
    static const struct pmi1_ops ops = {.send = on_send,
                                        .abort = on_abort,
                                        .barrier_in = on_barrier,
                                        .name = on_name,
                                        .spawn = on_spawn,
                                        .spawn_refused = on_spawn_refused};
    static const int local[] = {0, 2, 5}, node_of[] = {0, 1, 0, 1, 1, 0};
    struct pmi1_config config = {.kvsname = "kvs_1",
                                 .size = 6,
                                 .local_ranks = local,
                                 .local_count = 3,
                                 .node_of = node_of,
                                 .node_count = 2};
    struct fuzz_bytes bytes = {data, size};
    struct room room = {.barriers = 0};
    AUTO_STRV struct strv env = STRV_INIT;
    room.engine = pmi1_engine_create(&config, &ops, &room);
    pmi1_worker_env(room.engine, 2, 7, &env);
    while (bytes.left > 0) {
        uint8_t who = fuzz_u8(&bytes);
        const uint8_t *zero = bytes.left == 0 ? NULL : memchr(bytes.at, 0, bytes.left);
        size_t length = zero == NULL ? bytes.left : (size_t)(zero - bytes.at);
        char *text AUTO_FREE = fuzz_text(bytes.at, length);
        speak(&room, who, text, length);
        bytes.at += length + (zero != NULL);
        bytes.left -= length + (zero != NULL);
    }
    pmi1_engine_destroy(room.engine);
    return 0;
}
