/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's command line: see README.md. Exits with 0 when every invariant held, 1 when one
 * did not, 2 on wrong usage. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "sim/selftest.h"
#include "sim/shrink.h"
#include "sim/statistics.h"

#define INVARIANT_TEXT(name, text) text,
static const char *const invariant_texts[] = {INVARIANT_LIST(INVARIANT_TEXT)};
#undef INVARIANT_TEXT

const char *invariant_text(enum invariant invariant)
{
    return invariant_texts[invariant];
}

struct options {
    int64_t first, count;
    bool verbose, statistics, selftest, no_shrink, keep_going;
    const char *replay;
};

static const char usage[] =
    "usage: sim [--count N] [--first SEED] [--statistics] [--keep-going] [--no-shrink]\n"
    "       sim --seed SEED [--verbose]\n"
    "       sim --replay FILE [--verbose]\n"
    "       sim --selftest [--verbose]\n";

/* For the signal handler alone: which seed crashed. */
static volatile uint64_t current_seed;

static void crashed(int number)
{
    char text[96] = "sim: signal or hang at seed ";
    size_t length = strlen(text);
    char digits[24];
    int count = 0;
    for (uint64_t seed = current_seed; seed > 0 || count == 0; seed /= 10)
        digits[count++] = (char)('0' + seed % 10);
    while (count > 0)
        text[length++] = digits[--count];
    text[length++] = '\n';
    if (write(2, text, length) < 0)
        _exit(3);
    signal(number, SIG_DFL);
    raise(number);
}

static int number_of(const char *text, int64_t *out)
{
    struct error err = ERROR_INIT;
    if (text != NULL && parse_int(text, 0, INT64_MAX, out, &err) == 0)
        return 0;
    fprintf(stderr, "sim: %s\n%s", text == NULL ? "a number is missing" : err.text, usage);
    return -1;
}

static int parse_options(int argc, char **argv, struct options *out)
{
    *out = (struct options){.first = 1, .count = 1000};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        int rc = 0;
        if (strcmp(name, "--count") == 0) {
            rc = number_of(value, &out->count);
            i++;
        } else if (strcmp(name, "--first") == 0) {
            rc = number_of(value, &out->first);
            i++;
        } else if (strcmp(name, "--seed") == 0) {
            rc = number_of(value, &out->first);
            out->count = 1;
            i++;
        } else if (strcmp(name, "--replay") == 0 && value != NULL) {
            out->replay = value;
            i++;
        } else if (strcmp(name, "--verbose") == 0) {
            out->verbose = true;
        } else if (strcmp(name, "--statistics") == 0) {
            out->statistics = true;
        } else if (strcmp(name, "--selftest") == 0) {
            out->selftest = true;
        } else if (strcmp(name, "--no-shrink") == 0) {
            out->no_shrink = true;
        } else if (strcmp(name, "--keep-going") == 0) {
            out->keep_going = true;
        } else {
            fprintf(stderr, "sim: unknown option '%s'\n%s", name, usage);
            rc = -1;
        }
        if (rc != 0)
            return -1;
    }
    return 0;
}

static void report(struct world *world, struct schedule *schedule, const struct options *options)
{
    printf("seed %llu: %s: %s\n", (unsigned long long)schedule->seed, invariant_text(world->broken),
           world->problem);
    if (options->no_shrink)
        return;
    const int tries = shrink(world, schedule, (int)world->broken);
    printf("# shrunk in %d tries; put it into a file for: sim --replay FILE --verbose\n", tries);
    schedule_print(schedule, stdout);
    world->verbose = true;
    world_run(world, schedule, MUTATION_NONE);
    world->verbose = false;
    printf("%s: %s\n", invariant_text(world->broken), world->problem);
}

/* A core that crashes, or never returns, takes the simulator with it: a single run looks first. */
static bool crashes(struct world *world, struct schedule *schedule, const struct options *options)
{
    if (options->count != 1 || options->no_shrink || trial(world, schedule) != TRIAL_CRASHED)
        return false;
    const int tries = shrink(world, schedule, TRIAL_CRASHED);
    printf("the core crashes, or does not return\n# shrunk in %d tries; to see it: "
           "sim --replay FILE --verbose --no-shrink\n",
           tries);
    schedule_print(schedule, stdout);
    return true;
}

static int run_one(struct world *world, struct schedule *schedule, const struct options *options)
{
    if (crashes(world, schedule, options))
        return 1;
    world->verbose = options->verbose;
    if (options->verbose)
        schedule_print(schedule, stdout);
    const enum invariant broken = world_run(world, schedule, MUTATION_NONE);
    world->verbose = false;
    if (broken == INV_NONE)
        return 0;
    report(world, schedule, options);
    return 1;
}

/* Failures by invariant, when it goes on after the first. */
static int run_all(struct world *world, struct schedule *schedule, const struct options *options)
{
    int64_t failed[INVARIANTS] = {0}, seeds[INVARIANTS] = {0}, all = 0, steps = 0;
    const clock_t from = clock();
    for (int64_t i = 0; i < options->count; i++) {
        current_seed = (uint64_t)(options->first + i);
        alarm(60);
        schedule_generate(current_seed, schedule);
        if (world->statistics == NULL && !options->keep_going) {
            if (run_one(world, schedule, options) != 0)
                return 1;
        } else {
            const enum invariant broken = world_run(world, schedule, MUTATION_NONE);
            if (broken != INV_NONE && failed[broken]++ == 0)
                seeds[broken] = options->first + i;
            all += broken != INV_NONE;
            if (broken != INV_NONE && failed[broken] == 1)
                printf("seed %lld: %s: %s\n", (long long)seeds[broken], invariant_text(broken),
                       world->problem);
        }
        steps += world->steps;
    }
    const double seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
    for (int v = INV_NONE + 1; v < INVARIANTS; v++) {
        if (failed[v] > 0)
            printf("%8lld x %s (first: seed %lld)\n", (long long)failed[v],
                   invariant_text((enum invariant)v), (long long)seeds[v]);
    }
    printf("%lld schedules, %lld events, %.0f schedules a second: %s\n", (long long)options->count,
           (long long)steps, seconds > 0 ? (double)options->count / seconds : 0,
           all == 0 ? "every invariant held" : "FAILED");
    return all == 0 ? 0 : 1;
}

static int replay(struct world *world, struct schedule *schedule, const struct options *options)
{
    struct error err = ERROR_INIT;
    FILE *from = fopen(options->replay, "re");
    if (from == NULL) {
        fprintf(stderr, "sim: cannot read %s\n", options->replay);
        return 2;
    }
    const int rc = schedule_read(from, schedule, &err);
    fclose(from);
    if (rc != 0) {
        fprintf(stderr, "sim: %s: %s\n", options->replay, err.text);
        return 2;
    }
    struct options one = *options;
    one.count = 1;
    return run_one(world, schedule, &one);
}

int main(int argc, char **argv)
{
    struct options options;
    if (parse_options(argc, argv, &options) != 0)
        return 2;
    signal(SIGSEGV, crashed);
    signal(SIGABRT, crashed);
    signal(SIGALRM, crashed);
    struct world *world AUTO_FREE = mem_alloc(sizeof(*world));
    struct schedule *schedule AUTO_FREE = mem_alloc(sizeof(*schedule));
    struct statistics *statistics AUTO_FREE = mem_alloc(sizeof(*statistics));
    if (options.statistics)
        world->statistics = statistics;
    if (options.selftest)
        return selftest(world, options.verbose) == 0 ? 0 : 1;
    if (options.replay != NULL)
        return replay(world, schedule, &options);
    const int rc = run_all(world, schedule, &options);
    if (options.statistics)
        statistics_print(statistics);
    return rc;
}
