/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/shrink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIAL_LIMIT_S 20
#define TRIALS_MAX 3000
#define TRIAL_BASE 64 /* statuses of a child that has come to the end */

int trial(struct world *world, const struct schedule *schedule)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0)
        return TRIAL_CRASHED;
    if (child == 0) {
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(null, 2);
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        signal(SIGALRM, SIG_DFL);
        alarm(TRIAL_LIMIT_S);
        world->verbose = false;
        _exit(TRIAL_BASE + (int)world_run(world, schedule, MUTATION_NONE));
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    const bool ended = WIFEXITED(status) && WEXITSTATUS(status) >= TRIAL_BASE;
    return ended ? WEXITSTATUS(status) - TRIAL_BASE : TRIAL_CRASHED;
}

struct shrinker {
    struct world *world;
    struct schedule *best;
    int outcome, tries;
};

static bool attempt(struct shrinker *shrinker, const struct schedule *candidate)
{
    if (shrinker->tries >= TRIALS_MAX)
        return false;
    shrinker->tries++;
    if (trial(shrinker->world, candidate) != shrinker->outcome)
        return false;
    *shrinker->best = *candidate;
    return true;
}

static void without(struct schedule *schedule, int from, int count)
{
    memmove(&schedule->faults[from], &schedule->faults[from + count],
            (size_t)(schedule->fault_count - from - count) * sizeof(*schedule->faults));
    schedule->fault_count -= count;
}

static bool fewer_faults(struct shrinker *shrinker)
{
    bool better = false;
    for (int chunk = shrinker->best->fault_count; chunk > 0; chunk /= 2) {
        for (int from = 0; from + chunk <= shrinker->best->fault_count;) {
            struct schedule candidate = *shrinker->best;
            without(&candidate, from, chunk);
            if (attempt(shrinker, &candidate))
                better = true;
            else
                from += chunk;
        }
    }
    return better;
}

static bool try_time(struct shrinker *shrinker, int at, int64_t cut_ms)
{
    struct schedule candidate = *shrinker->best;
    if (cut_ms <= 0)
        return false;
    for (int i = at; i < candidate.fault_count; i++)
        candidate.faults[i].at_ms -= cut_ms;
    return attempt(shrinker, &candidate);
}

/* Less time before each fault, all later ones move along. */
static bool shorter(struct shrinker *shrinker)
{
    bool better = false;
    for (int i = 0; i < shrinker->best->fault_count; i++) {
        const struct fault *faults = shrinker->best->faults;
        const int64_t gap = faults[i].at_ms - (i > 0 ? faults[i - 1].at_ms : 0);
        if (try_time(shrinker, i, gap))
            better = true;
        else if (gap > 2000 && try_time(shrinker, i, gap / 2))
            better = true;
    }
    return better;
}

static bool plainer(struct shrinker *shrinker)
{
    bool better = false;
    for (int i = 0; i < shrinker->best->fault_count; i++) {
        struct schedule candidate = *shrinker->best;
        struct fault *fault = &candidate.faults[i];
        const bool listed = fault->kind == FAULT_LIST_HOST;
        if (fault->host > 0) {
            fault->host = 0;
            better |= attempt(shrinker, &candidate);
            candidate = *shrinker->best;
        }
        if (listed && candidate.faults[i].value > 1) {
            candidate.faults[i].value--;
            better |= attempt(shrinker, &candidate);
        }
    }
    return better;
}

/* One setting after the other gets the value that means least. */
static bool settings(struct shrinker *shrinker)
{
    bool better = false;
    struct elastic_config plain;
    elastic_config_init(&plain);
#define TRY(field, value)                            \
    do {                                             \
        struct schedule candidate = *shrinker->best; \
        if (candidate.field != (value)) {            \
            candidate.field = (value);               \
            better |= attempt(shrinker, &candidate); \
        }                                            \
    } while (0)
    TRY(repeats, 0);
    TRY(hang_ms, 0);
    TRY(config.spares, 0);
    TRY(config.max_np, 0);
    TRY(config.min_np, 1);
    TRY(config.np, 1);
    TRY(config.np, shrinker->best->config.min_np);
    TRY(config.reset_limit, -1);
    TRY(config.max_restarts, -1);
    TRY(config.max_preemptions, -1);
    TRY(config.cooldown_min_ms, 0);
    TRY(config.cooldown_max_ms, 0);
    TRY(config.failure_limit, plain.failure_limit);
    TRY(config.grow_delay_ms, 0);
    TRY(config.gather_ms, 0);
    TRY(work_ms, 600000);
#undef TRY
    return better;
}

int shrink(struct world *world, struct schedule *schedule, int outcome)
{
    struct shrinker shrinker = {.world = world, .best = schedule, .outcome = outcome};
    bool better = true;
    while (better && shrinker.tries < TRIALS_MAX) {
        better = fewer_faults(&shrinker);
        better |= settings(&shrinker);
        better |= plainer(&shrinker);
        better |= shorter(&shrinker);
    }
    return shrinker.tries;
}
