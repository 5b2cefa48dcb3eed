/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages from another rank, which runtime/core does not trust. The first byte chooses the side:
 * the root reads reports, a member reads decisions. Then come messages, each after two bytes of its
 * length. Between them, this rank submits tensors.
 */
#include "core/core.h"
#include "fuzz.h"

enum { RANKS = 3, TICKETS = 64 };

struct run {
    struct core *core;
    char tickets[TICKETS]; /* how often each is complete */
    int submitted;
};

static void complete(struct run *run, void *token)
{
    if (token == NULL)
        return;
    size_t number = (size_t)((char *)token - run->tickets);
    FUZZ_CHECK(number < TICKETS && ++run->tickets[number] == 1);
}

static void take_actions(struct run *run)
{
    struct action action;
    while (core_take(run->core, &action)) {
        for (size_t i = 0; i < action.count; i++)
            complete(run, action.parts[i].token);
        if (action.kind == ACTION_DONE)
            complete(run, action.token);
        FUZZ_CHECK(action.kind != ACTION_RUN || action.count > 0);
        action_destroy(&action);
    }
}

static void submit(struct run *run, uint8_t choice)
{
    struct error err = ERROR_INIT;
    char name[2] = {(char)('a' + choice % 8), '\0'};
    enum kind kind = choice > 240 ? KIND_BARRIER : KIND_ALLREDUCE;
    struct request request = {.key = request_key(kind, name),
                              .kind = kind,
                              .type = HVD_FLOAT32,
                              .op = HVD_SUM,
                              .prescale = 1,
                              .postscale = 1};
    if (run->submitted == TICKETS)
        request_destroy(&request);
    else if (core_submit(run->core, &request, &run->tickets[run->submitted], 1, &err) == HVD_OK)
        run->submitted++;
}

FUZZ_TARGET
{
    static const int ranks[RANKS] = {0, 1, 2};
    struct fuzz_bytes bytes = {data, size};
    bool root = fuzz_u8(&bytes) % 2 == 0;
    struct core_config config = {.rank = root ? 0 : 1,
                                 .size = RANKS,
                                 .ranks = ranks,
                                 .world_size = RANKS,
                                 .capacity = 4,
                                 .threshold = 64,
                                 .silence_ns = 1000};
    struct run run = {.core = core_create(&config, 0)};
    int64_t now_ns = 1;
    while (bytes.left > 0) {
        struct error err = ERROR_INIT;
        uint8_t length = fuzz_u8(&bytes), choice = fuzz_u8(&bytes);
        size_t part = length < bytes.left ? length : bytes.left;
        char *message = fuzz_text(bytes.at, part);
        submit(&run, choice);
        int from = root ? 1 + choice % 2 : 0;
        int rc = core_receive(run.core, from, message, part, ++now_ns, &err);
        fuzz_check_error(rc, &err);
        if (rc == 0)
            rc = core_turn(run.core, now_ns, &err);
        fuzz_check_error(rc, &err);
        if (rc != 0)
            core_lost(run.core, HVD_ERR_PEER_LOST, err.text);
        take_actions(&run);
        free(message);
        bytes.at += part;
        bytes.left -= part;
    }
    core_lost(run.core, HVD_ERR_PEER_LOST, "the end");
    take_actions(&run);
    for (int i = 0; i < run.submitted; i++)
        FUZZ_CHECK(run.tickets[i] == 1);
    core_destroy(run.core);
    return 0;
}
