/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules from seeds. Each has a theme: most faults come from the theme's few kinds, so that
 * stories build up (a host that flaps, a program that crashes again and again), the others from
 * all kinds. Lengths are mostly short: a short schedule costs little and finds most.
 */
#include <string.h>

#include "sim/rng.h"
#include "sim/schedule.h"

#define THEME_KINDS 6

/* FAULTS ends a row. */
static const enum fault_kind themes[][THEME_KINDS] = {
    {FAULT_CRASH, FAULT_CRASH, FAULT_TRAP, FAULT_HANG, FAULTS},
    {FAULT_POWER_OFF, FAULT_POWER_ON, FAULT_POWER_ON, FAULT_SILENT, FAULTS},
    {FAULT_LIST_HOST, FAULT_LIST_HOST, FAULT_UNLIST, FAULT_RELIST, FAULT_DISCOVERY, FAULTS},
    {FAULT_DRAIN, FAULT_DRAIN, FAULT_UNDRAIN, FAULT_LIST_HOST, FAULTS},
    {FAULT_AGENT_DIES, FAULT_SILENT, FAULT_STUCK, FAULT_POWER_OFF, FAULT_POWER_ON, FAULTS},
    {FAULT_HANG, FAULT_STUBBORN, FAULT_REACTION, FAULT_CRASH, FAULT_ASK, FAULTS},
    {FAULT_ASK, FAULT_DROP_ASK, FAULT_STRAY_ASK, FAULT_STRAY_EVENT, FAULT_CRASH, FAULTS},
    {FAULT_CRASHY, FAULT_CRASH, FAULT_TRAP, FAULT_PREPARE_FAILS, FAULTS},
    {FAULT_EXIT_0, FAULT_REACTION, FAULT_CRASH, FAULT_TRAP, FAULTS},
    {FAULT_JUMP, FAULT_LATE_TICKS, FAULT_CRASH, FAULT_LIST_HOST, FAULT_POWER_OFF, FAULTS},
};
#define THEMES ((int)(sizeof(themes) / sizeof(themes[0])))

static enum fault_kind pick_kind(struct rng *rng, int theme)
{
    if (!rng_chance(rng, 70)) {
        const enum fault_kind kind = (enum fault_kind)rng_below(rng, FAULT_END + 1);
        /* an end of the job by its driver ends the story as well */
        return kind == FAULT_END && !rng_chance(rng, 15) ? FAULT_CRASH : kind;
    }
    int count = 0;
    while (count < THEME_KINDS && themes[theme][count] != FAULTS)
        count++;
    return themes[theme][rng_below(rng, count)];
}

static int64_t pick_jump(struct rng *rng)
{
    switch (rng_below(rng, 4)) {
    case 0: return -rng_between(rng, 1, 3000);
    case 1: return rng_between(rng, 1, 3000);
    case 2: return rng_between(rng, 3000, 60000);
    default: return rng_between(rng, 60000, 7200000);
    }
}

static int64_t pick_code(struct rng *rng)
{
    static const int64_t codes[] = {1, 1, 2, 134, 137, 255, -11, -6, -9, -15, -35};
    return codes[rng_below(rng, (int)(sizeof(codes) / sizeof(codes[0])))];
}

static int64_t pick_value(struct rng *rng, enum fault_kind kind)
{
    switch (kind) {
    case FAULT_LIST_HOST: return rng_between(rng, 1, 4);
    case FAULT_POWER_OFF:
    case FAULT_POWER_ON: return rng_below(rng, 2);
    case FAULT_STUCK: return rng_between(rng, 100, rng_chance(rng, 50) ? 3000 : 120000);
    case FAULT_SILENT: return rng_between(rng, 100, rng_chance(rng, 60) ? 4900 : 30000);
    case FAULT_DRAIN: return rng_chance(rng, 40) ? -1 : rng_between(rng, 0, 30000);
    case FAULT_PREPARE_FAILS: return rng_between(rng, 1, 4);
    case FAULT_CRASH: return pick_code(rng);
    case FAULT_REACTION: return rng_below(rng, REACTIONS);
    case FAULT_STRAY_ASK: return rng_between(rng, -1, 5);
    case FAULT_TRAP: return rng_between(rng, 1, TRAPS - 1);
    case FAULT_CRASHY: return rng_between(rng, 1000, 60000);
    case FAULT_STRAY_EVENT: return rng_below(rng, 1000);
    case FAULT_JUMP: return pick_jump(rng);
    case FAULT_LATE_TICKS: return rng_between(rng, 0, 2000);
    default: return 0;
    }
}

static void pick_config(struct rng *rng, struct elastic_config *config)
{
    elastic_config_init(config);
    const int mode = rng_below(rng, 100);
    config->mode = mode < 55   ? ELASTIC_AUTO
                   : mode < 75 ? ELASTIC_REJOIN
                   : mode < 95 ? ELASTIC_RESTART
                               : ELASTIC_STOP;
    config->min_np = 1 + rng_below(rng, 4);
    config->np = config->min_np + rng_below(rng, 4);
    config->max_np = rng_chance(rng, 40) ? 0 : config->np + rng_below(rng, 4);
    config->spares = rng_chance(rng, 75) ? 0 : 1 + rng_below(rng, 2);
    config->early = rng_chance(rng, 60);
    if (rng_chance(rng, 10))
        return;
    config->reset_limit = rng_chance(rng, 80) ? -1 : rng_below(rng, 5);
    config->max_restarts = rng_chance(rng, 40) ? -1 : rng_below(rng, 6);
    config->max_preemptions = rng_chance(rng, 60) ? -1 : rng_below(rng, 4);
    config->elastic_timeout_ms = rng_between(rng, 5000, 60000);
    config->rejoin_timeout_ms = rng_between(rng, 1000, 20000);
    config->prepare_timeout_ms = rng_between(rng, 3000, 20000);
    config->grow_delay_ms = rng_chance(rng, 30) ? 0 : rng_between(rng, 1, 3000);
    config->gather_ms = rng_chance(rng, 30) ? 0 : rng_between(rng, 1, 40000);
    config->grace_ms = rng_chance(rng, 20) ? 0 : rng_between(rng, 1, 5000);
    config->orderly_grace_ms = rng_chance(rng, 20) ? 0 : rng_between(rng, 1, 8000);
    const bool range = rng_chance(rng, 60);
    config->cooldown_min_ms = range ? rng_between(rng, 1000, 5000) : 0;
    config->cooldown_max_ms = range ? rng_between(rng, 5000, 60000) : 0;
    config->reconnect_min_ms = rng_between(rng, 500, 2000);
    config->reconnect_max_ms = rng_between(rng, 2000, 15000);
    config->failure_decay_ms = rng_between(rng, 5000, 600000);
    config->suspect_ms = rng_between(rng, 500, 10000);
    config->renotify_ms = rng_between(rng, 500, 10000);
    config->patience_ms = rng_between(rng, 3000, 10000);
    config->failure_limit = rng_between(rng, 0, 3) == 0 ? 1 + rng_below(rng, 4) : 3;
}

static void add_fault(struct schedule *out, int64_t at_ms, enum fault_kind kind, int host,
                      int64_t value)
{
    if (out->fault_count == SCHEDULE_FAULTS)
        return;
    int at = out->fault_count++;
    for (; at > 0 && out->faults[at - 1].at_ms > at_ms; at--)
        out->faults[at] = out->faults[at - 1];
    out->faults[at] = (struct fault){.at_ms = at_ms, .kind = kind, .host = host, .value = value};
}

static int pick_length(struct rng *rng)
{
    int length = 1;
    while (length < 60 && rng_chance(rng, 87))
        length++;
    return length;
}

void schedule_generate(uint64_t seed, struct schedule *out)
{
    struct rng rng = rng_stream(seed, 1);
    memset(out, 0, sizeof(*out));
    out->seed = seed;
    pick_config(&rng, &out->config);
    out->config.hosts_dial_in = seed % 5 == 0;
    const int program = rng_below(&rng, 100);
    out->program = program < 65 ? PROGRAM_HOROVOD : program < 92 ? PROGRAM_PLAIN : PROGRAM_MIXED;
    out->gate = out->program == PROGRAM_HOROVOD && rng_chance(&rng, 70);
    out->repeats = rng_chance(&rng, 30) ? 10 : 0;
    const int hosts = 1 + rng_below(&rng, SCHEDULE_HOSTS - 1);
    if (rng_chance(&rng, 2))
        add_fault(out, 0, FAULT_DISCOVERY, 0, 0);
    int slots = 0;
    for (int h = 0; h < hosts; h++) {
        add_fault(out, 0, FAULT_LIST_HOST, h, rng_between(&rng, 1, 4));
        slots += (int)out->faults[out->fault_count - 1].value;
    }
    if (slots < out->config.np && rng_chance(&rng, 85)) { /* or it waits for more to come */
        out->config.np = slots;
        out->config.min_np = out->config.min_np > slots ? slots : out->config.min_np;
    }
    const int64_t horizon = rng_between(&rng, 3000, rng_chance(&rng, 60) ? 30000 : 150000);
    out->work_ms = rng_chance(&rng, 80) ? horizon + rng_between(&rng, 0, 20000)
                                        : rng_between(&rng, 100, horizon);
    const int theme = rng_below(&rng, THEMES);
    for (int left = pick_length(&rng); left > 0; left--) {
        const enum fault_kind kind = pick_kind(&rng, theme);
        const int host =
            rng_chance(&rng, 80) ? rng_below(&rng, hosts) : rng_below(&rng, SCHEDULE_HOSTS);
        int64_t at_ms = rng_between(&rng, 0, horizon);
        /* some come at one moment: that is where the races are */
        if (out->fault_count > hosts && rng_chance(&rng, 35))
            at_ms = out->faults[hosts + rng_below(&rng, out->fault_count - hosts)].at_ms +
                    rng_between(&rng, 0, rng_chance(&rng, 60) ? 400 : 4000);
        add_fault(out, at_ms, kind, host, pick_value(&rng, kind));
    }
    if (rng_chance(&rng, 50))
        out->hang_ms = (int)rng_between(&rng, 500, 15000);
    for (int left = out->hang_ms > 0 ? rng_below(&rng, 4) : 0; left > 0; left--)
        add_fault(out, rng_between(&rng, 1, horizon), FAULT_HANG, rng_below(&rng, hosts), 0);
    for (int left = rng_chance(&rng, 20) ? 1 + rng_below(&rng, 2) : 0; left > 0; left--)
        add_fault(out, rng_between(&rng, 1, horizon), FAULT_UNKILLED, rng_below(&rng, hosts), 0);
    if (rng_chance(&rng, 70))
        return;
    out->config.idle_restarts = 1 + rng_below(&rng, 3);
    for (int left = 1 + rng_below(&rng, 4); left > 0; left--)
        add_fault(out, rng_between(&rng, 1, horizon), FAULT_PROGRESS, 0, 0);
}
