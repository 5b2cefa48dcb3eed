/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What workers of MPI publish for each other and bring to their common steps, as the driver keeps
 * it: any order of publishing, looking up, ending and joining. Each question is answered once.
 */
#include "base/mem.h"
#include "driver/mpi/rounds.h"
#include "fuzz.h"
#include "model/hosts/entry.h"
#include "model/hosts/hosts.h"
#include "pmix/publish_store.h"
#include "wire/packing.h"

#define ROUND_MAX 512
#define NODES 3
#define RANKS 6
#define QUESTIONS_MAX 256

struct stage {
    struct fuzz_bytes bytes;
    struct plan *plan;
    struct publish_store *store;
    struct mpi_rounds *rounds;
    int answers[QUESTIONS_MAX]; /* to lookups */
    size_t questions;
    uint64_t tokens; /* of steps: each is answered once at most */
    uint8_t stepped[QUESTIONS_MAX];
    int64_t now_ms;
    unsigned gone; /* ranks, as bits */
};

/* One of a few, so that they meet. */
static const char *word(struct stage *stage, const char *const *words, size_t count)
{
    return words[fuzz_u8(&stage->bytes) % count];
}

static const char *key(struct stage *stage)
{
    static const char *const keys[] = {"a", "b", "port", "btl.tcp", ""};
    return word(stage, keys, 5);
}

static struct store_owner owner(struct stage *stage)
{
    static const char *const nspaces[] = {"job.1", "job.2"};
    uint32_t rank = fuzz_u8(&stage->bytes) % RANKS;
    return (struct store_owner){word(stage, nspaces, 2), rank, stage->plan->ranks[rank].node};
}

static void answered(void *context, enum store_status status, const struct store_item *items,
                     size_t count)
{
    int *answers = context;
    bool has = status == STORE_OK || status == STORE_PARTIAL;
    FUZZ_CHECK(has || count == 0);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(items[i].key != NULL && (items[i].length == 0 || items[i].bytes != NULL));
    (*answers)++;
}

static size_t at_most(size_t wanted, size_t left)
{
    return wanted < left ? wanted : left;
}

static void publish(struct stage *stage)
{
    struct store_owner who = owner(stage);
    struct store_item items[4];
    size_t count = fuzz_u8(&stage->bytes) % 5;
    uint8_t kinds = fuzz_u8(&stage->bytes);
    for (size_t i = 0; i < count; i++) {
        const char *name = key(stage);
        size_t length = fuzz_u8(&stage->bytes) % 64;
        items[i] = (struct store_item){
            .key = name, .bytes = stage->bytes.at, .length = at_most(length, stage->bytes.left)};
    }
    size_t before = publish_store_count(stage->store);
    enum store_status status = publish_store_publish(
        stage->store, &who, (enum store_range)(kinds % (STORE_RM + 1)),
        (enum store_keep)(kinds / 8 % (STORE_KEEP_SESSION + 1)), items, count);
    FUZZ_CHECK(status == STORE_OK || publish_store_count(stage->store) == before);
}

static void look_up(struct stage *stage)
{
    char *keys[4] = {NULL};
    struct store_owner who = owner(stage);
    uint8_t kinds = fuzz_u8(&stage->bytes);
    for (size_t i = 0; i < kinds % 4u; i++)
        keys[i] = (char *)(uintptr_t)key(stage);
    if (stage->questions == QUESTIONS_MAX)
        return;
    int *answers = &stage->answers[stage->questions++];
    int64_t deadline = kinds & 0x80 ? -1 : stage->now_ms + fuzz_u8(&stage->bytes);
    publish_store_lookup(stage->store, &who, (enum store_range)(kinds / 4 % (STORE_RM + 1)), keys,
                         fuzz_u32(&stage->bytes), deadline, answered, answers);
}

static void unpublish(struct stage *stage)
{
    struct store_owner who = owner(stage);
    uint8_t kinds = fuzz_u8(&stage->bytes);
    char *keys[] = {(char *)(uintptr_t)key(stage), NULL};
    publish_store_unpublish(stage->store, &who, (enum store_range)(kinds % (STORE_RM + 1)),
                            kinds & 0x80 ? NULL : keys);
}

static void pass_time(struct stage *stage)
{
    stage->now_ms += fuzz_u8(&stage->bytes);
    publish_store_expire(stage->store, stage->now_ms);
    int64_t next = publish_store_deadline(stage->store);
    FUZZ_CHECK(next < 0 || next > stage->now_ms);
}

static void stepped(void *context, int node, const struct mpi_answer *answer)
{
    struct stage *stage = context;
    FUZZ_CHECK(node >= 0 && node < NODES && answer->token < stage->tokens);
    FUZZ_CHECK(stage->stepped[answer->token] == 0);
    stage->stepped[answer->token] = 1;
    void *whole AUTO_FREE =
        packing_expand(answer->data->bytes, answer->data->length, answer->expanded, ROUND_MAX);
    FUZZ_CHECK(answer->expanded == 0 || whole != NULL);
}

static void join(struct stage *stage)
{
    uint32_t ranks[4];
    struct error err = ERROR_INIT;
    uint8_t who = fuzz_u8(&stage->bytes);
    const char *name = key(stage);
    size_t count = fuzz_u8(&stage->bytes) % 5, length = fuzz_u8(&stage->bytes);
    for (size_t i = 0; i < count; i++)
        ranks[i] = fuzz_u32(&stage->bytes);
    if (stage->tokens == QUESTIONS_MAX)
        return;
    struct mpi_step step = {.token = stage->tokens++,
                            .key = name,
                            .ranks = ranks,
                            .rank_count = count,
                            .bytes = stage->bytes.at,
                            .length = at_most(length, stage->bytes.left),
                            .on_demand = (who & 0x80) != 0,
                            .kept = who >> 6 & 1};
    enum mpi_join result = mpi_rounds_join(stage->rounds, who % 64 % NODES, &step, &err);
    fuzz_check_error(result == MPI_TOO_MUCH ? -1 : 0, &err);
}

static bool is_gone(void *context, int rank)
{
    FUZZ_CHECK(rank >= 0 && rank < RANKS);
    return (((struct stage *)context)->gone >> rank & 1) != 0;
}

static void look_stuck(struct stage *stage)
{
    int node = -1, rank = -1;
    stage->gone |= 1u << fuzz_u8(&stage->bytes) % RANKS;
    if (mpi_rounds_stuck(stage->rounds, is_gone, stage, &node, &rank))
        FUZZ_CHECK(node >= 0 && node < NODES && rank >= 0 && rank < RANKS);
}

static void play(struct stage *stage)
{
    struct store_owner who;
    while (stage->bytes.left > 0) {
        switch (fuzz_u8(&stage->bytes) % 10) {
        case 0:
        case 1: publish(stage); break;
        case 2: look_up(stage); break;
        case 3: unpublish(stage); break;
        case 4: pass_time(stage); break;
        case 5:
            who = owner(stage);
            publish_store_end_proc(stage->store, who.nspace, who.rank);
            break;
        case 6: publish_store_end_nspace(stage->store, owner(stage).nspace); break;
        case 7: mpi_rounds_node_lost(stage->rounds, fuzz_u8(&stage->bytes) % NODES); break;
        case 8: look_stuck(stage); break;
        default: join(stage); break;
        }
    }
}

FUZZ_TARGET
{
    struct stage stage = {.bytes = {data, size}};
    struct host_list hosts = {.count = 0};
    struct app_list apps = {.count = 0};
    hosts_parse("a:2,b:3,c:1", &hosts, NULL);
    strv_add(&app_list_add(&apps)->argv, "true");
    struct plan_request wanted = {.hosts = &hosts, .apps = &apps};
    stage.plan = plan_create(&wanted, NULL);
    FUZZ_CHECK(stage.plan != NULL && stage.plan->size == RANKS);
    stage.store = publish_store_create();
    struct mpi_limits limits = {.round = ROUND_MAX, .all = 1024, .shrink = 32, .demand = 256};
    stage.rounds = mpi_rounds_create(stage.plan, &limits, stepped, &stage);
    play(&stage);
    mpi_rounds_destroy(stage.rounds);
    publish_store_destroy(stage.store);
    for (size_t i = 0; i < stage.questions; i++)
        FUZZ_CHECK(stage.answers[i] == 1);
    plan_destroy(stage.plan);
    app_list_destroy(&apps);
    hosts_destroy(&hosts);
    return 0;
}
