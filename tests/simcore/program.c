/* SPDX-License-Identifier: Apache-2.0 */
#include "simcore/program.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define US ((int64_t)1000)

int program_set_rank(const struct program *program, int set, int rank)
{
    for (int i = 0; i < program->sets[set].count; i++)
        if (program->sets[set].ranks[i] == rank)
            return i;
    return -1;
}

static void generate_sets(struct program *program, struct rng *rng)
{
    program->set_count = rng_chance(rng, 40) ? 1 : 1 + rng_below(rng, 3);
    program->static_count = 1 + rng_below(rng, program->set_count);
    for (int s = 0; s < program->set_count; s++) {
        struct sim_set *set = &program->sets[s];
        for (int rank = 0; rank < program->ranks; rank++)
            if (s == 0 || rng_chance(rng, 60))
                set->ranks[set->count++] = rank;
        if (set->count == 0)
            set->ranks[set->count++] = rng_below(rng, program->ranks);
    }
}

static enum kind kind_of(const struct program *program, struct rng *rng)
{
    static const enum kind kinds[] = {KIND_ALLGATHER, KIND_BROADCAST, KIND_ALLTOALL,
                                      KIND_REDUCESCATTER};
    return program->joins || rng_chance(rng, 85) ? KIND_ALLREDUCE : kinds[rng_below(rng, 4)];
}

static void generate_call(const struct program *program, struct rng *rng, int number,
                          struct call *call)
{
    static const enum hvd_type types[] = {HVD_FLOAT32, HVD_FLOAT64, HVD_INT32};
    *call = (struct call){.set = program->joins ? 0 : rng_below(rng, program->static_count),
                          .kind = kind_of(program, rng),
                          .type = types[rng_chance(rng, 85) ? 0 : rng_below(rng, 3)],
                          .op = rng_chance(rng, 90) ? HVD_SUM : HVD_MAX,
                          .shape = {rng_between(rng, 0, 60), 3},
                          .odd_rank = -1};
    snprintf(call->name, sizeof call->name, "x%d", number);
    call->priority = rng_chance(rng, 70) ? 0 : rng_below(rng, 7) - 3;
    if (rng_chance(rng, 4)) {
        call->odd_rank = rng_below(rng, program->sets[call->set].count);
        call->odd_what = rng_below(rng, 4);
    }
    if (rng_chance(rng, 5)) {
        call->kind = KIND_BARRIER;
        call->odd_rank = -1;
    }
}

/* Names of a step are different; barriers of one set are not at the same time. */
static bool clashes(const struct step *step, const struct call *call)
{
    for (int i = 0; i < step->count; i++)
        if (call->kind == KIND_BARRIER && step->calls[i].kind == KIND_BARRIER &&
            step->calls[i].set == call->set)
            return true;
    return false;
}

static void generate_step(struct program *program, struct rng *rng, int number)
{
    struct step *step = &program->steps[number];
    bool repeats = number > 0 && rng_chance(rng, 80);
    if (repeats) {
        *step = program->steps[number - 1];
        for (int i = 0; i < step->count; i++)
            step->calls[i].odd_rank = -1;
        if (step->count > 0 && rng_chance(rng, 10))
            step->calls[rng_below(rng, step->count)].priority++;
    }
    int count = repeats ? rng_below(rng, 100) < 80 ? 0 : 1 : 1 + rng_below(rng, 12);
    for (int i = 0; i < count && step->count < CALLS_MAX; i++) {
        struct call call;
        generate_call(program, rng, number * CALLS_MAX + i, &call);
        if (!clashes(step, &call))
            step->calls[step->count++] = call;
    }
}

/* Sets that do not exist from the start come in one step, and may go in a later one. */
static void generate_changes(struct program *program, struct rng *rng)
{
    if (program->joins)
        return;
    for (int s = program->static_count; s < program->set_count; s++) {
        int from = rng_below(rng, program->step_count);
        struct step *step = &program->steps[from];
        struct call add = {.kind = KIND_ADD_SET, .target = s, .odd_rank = -1, .type = HVD_INT32};
        if (step->count > 0 && step->calls[step->count - 1].kind == KIND_ADD_SET)
            continue; /* one at a time */
        if (step->count == CALLS_MAX)
            continue;
        step->calls[step->count++] = add;
        for (int at = from + 1; at < program->step_count; at++) {
            struct step *later = &program->steps[at];
            if (later->count == CALLS_MAX)
                continue;
            struct call use;
            generate_call(program, rng, at * CALLS_MAX + 20 + s - program->static_count, &use);
            use.set = s;
            use.odd_rank = -1;
            if (at == program->step_count - 1) {
                use.set = 0;
                use.kind = KIND_REMOVE_SET;
                use.target = s;
                use.type = HVD_INT32;
                for (int i = 0; i < later->count; i++)
                    if (later->calls[i].kind == KIND_REMOVE_SET)
                        use.kind = KINDS;
            }
            if (use.kind != KINDS)
                later->calls[later->count++] = use;
        }
    }
}

void program_generate(uint64_t seed, struct program *program)
{
    struct rng rng = rng_stream(seed, 1);
    static const size_t capacities[] = {0, 2, 5, 64, 64, 64};
    static const size_t thresholds[] = {0, 500, 2000, 1 << 20, 1 << 20};
    *program = (struct program){.seed = seed, .slow_rank = -1, .dies = -1, .leaves = -1};
    program->ranks = 1 + rng_below(&rng, RANKS_MAX - 1) + rng_below(&rng, 2);
    program->joins = rng_chance(&rng, 15);
    program->in_order = rng_chance(&rng, 20);
    program->unequal = rng_chance(&rng, 10);
    program->step_count = rng_chance(&rng, 60) ? 1 + rng_below(&rng, 4) : 1 + rng_below(&rng, 11);
    generate_sets(program, &rng);
    for (int i = 0; i < program->step_count; i++)
        generate_step(program, &rng, i);
    generate_changes(program, &rng);
    for (int rank = 0; rank < program->ranks; rank++)
        program->own_steps[rank] =
            program->joins ? rng_below(&rng, program->step_count + 1) : program->step_count;
    program->hurry_percent = rng_below(&rng, 3) * 50;
    program->delay_ns = rng_between(&rng, 1, rng_chance(&rng, 60) ? 10 : 400) * US;
    program->latency_ns = rng_between(&rng, 1, 300) * US;
    program->capacity = capacities[rng_below(&rng, 6)];
    program->threshold = thresholds[rng_below(&rng, 5)];
    program->cycle_ns = rng_chance(&rng, 10) ? 0 : rng_between(&rng, 1, 2000) * US;
    program->tunes = rng_chance(&rng, 25);
    if (rng_chance(&rng, 30))
        program->slow_rank = rng_below(&rng, program->ranks);
    program->fault_ns = rng_between(&rng, 0, 20000) * US;
    if (rng_chance(&rng, 15))
        program->dies = rng_below(&rng, program->ranks);
    else if (rng_chance(&rng, 10))
        program->leaves = rng_below(&rng, program->ranks);
    program->freezes = program->dies >= 0 && rng_chance(&rng, 25);
}

static void make_odd(struct request *request, int what)
{
    switch (what) {
    case 0: request->type = HVD_INT64; break;
    case 1: request->shape[1]++; break;
    case 2:
        request->kind = KIND_ALLREDUCE == request->kind ? KIND_ALLGATHER : KIND_ALLREDUCE;
        break;
    default: request->prescale = 0.5; break;
    }
}

struct request program_request(const struct program *program, const struct call *call, int set_rank)
{
    struct request request = {.key = request_key(call->kind, call->name),
                              .kind = call->kind,
                              .type = call->type,
                              .op = call->op,
                              .prescale = 1,
                              .postscale = 1,
                              .priority = call->priority};
    if (program->unequal && set_rank > 0)
        request.priority -= set_rank;
    if (request_has_tensor(&request)) {
        request.dims = 2;
        request.shape = mem_dup(call->shape, sizeof call->shape);
        if (call->kind == KIND_ALLGATHER || call->kind == KIND_ALLTOALL)
            request.shape[0] += set_rank; /* these may differ */
        if (call->kind == KIND_BROADCAST)
            request.root = program->sets[call->set].ranks[0];
        if (call->odd_rank == set_rank)
            make_odd(&request, call->odd_what);
    } else if (call->kind == KIND_ADD_SET) {
        const struct sim_set *set = &program->sets[call->target];
        request.dims = set->count;
        request.shape = mem_array((size_t)set->count, sizeof *request.shape);
        for (int i = 0; i < set->count; i++)
            request.shape[i] = set->ranks[i];
    } else if (call->kind == KIND_REMOVE_SET) {
        request.root = call->target;
    }
    return request;
}
