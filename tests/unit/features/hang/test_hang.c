/* SPDX-License-Identifier: Apache-2.0 */
/* The single rules; tests/simhang has whole schedules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/hang/hang.h"

#define PERIOD 1000 /* of a limit of 40 s */

struct fixture {
    struct hang *hang;
    struct hang_sample ranks[4];
    int count;
    int64_t now;
};

static void begin(struct fixture *f, int64_t warning_s, int64_t hang_s, int count)
{
    struct hang_limits limits = {warning_s * 1000, hang_s * 1000};
    *f = (struct fixture){.hang = hang_create(&limits, NULL), .count = count, .now = 5000};
    for (int i = 0; i < count; i++) {
        hang_seat(f->hang, i, 1);
        f->ranks[i].cpu_us = 1000000;
    }
}

/* One period, in which each rank has used as much as `f->ranks` says. */
static enum hang_news step(struct fixture *f)
{
    f->now += PERIOD;
    for (int i = 0; i < f->count; i++)
        hang_sample(f->hang, i, &f->ranks[i], f->now);
    return hang_tick(f->hang, f->now);
}

/* The number of periods until the news come; -1: not within `most`, or other news come first. */
static int steps_until(struct fixture *f, enum hang_news wanted, int most)
{
    for (int i = 1; i <= most; i++) {
        enum hang_news news = step(f);
        if (news == wanted)
            return i;
        if (news != HANG_NOTHING)
            return -1;
    }
    return -1;
}

static void test_all_wait(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 3);
    assert_int_equal(hang_period_ms(f.hang), PERIOD);
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 41); /* the first sample is not silence */
    assert_int_equal(hang_quiet_ms(f.hang, f.now), 40000);
    assert_int_equal(hang_way(f.hang, 2), HANG_WAITS);
    assert_int_equal(steps_until(&f, HANG_FOUND, 100), -1); /* once */
    f.ranks[1].output++;
    assert_int_equal(step(&f), HANG_PASSED);
    assert_int_equal(hang_way(f.hang, 1), HANG_MOVES);
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 40); /* and again */
    hang_destroy(f.hang);
    hang_destroy(NULL);
}

/* A main thread that has run since it is quiet may wait in a loop. */
static void test_sleep(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 3);
    f.ranks[0].main_ns = f.ranks[1].main_ns = 1000;
    assert_false(hang_sleeps(f.hang, 0));
    for (int i = 0; i < 41; i++) {
        assert_int_equal(step(&f), i < 40 ? HANG_NOTHING : HANG_FOUND);
        f.ranks[1].main_ns += 1000;
    }
    assert_true(hang_sleeps(f.hang, 0));
    assert_false(hang_sleeps(f.hang, 1));
    assert_false(hang_sleeps(f.hang, 2)); /* it is not known */
    assert_false(hang_sleeps(f.hang, 9));
    f.ranks[0].operations++;
    step(&f);
    assert_false(hang_sleeps(f.hang, 0));
    hang_destroy(f.hang);
}

/* An answer that was late and the next one come between two looks at the clock. */
static void test_short_progress_between_two_ticks(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 2);
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 41);
    f.ranks[1].output++;
    for (int samples = 0; samples < 2; samples++) {
        f.now += PERIOD;
        for (int i = 0; i < f.count; i++)
            hang_sample(f.hang, i, &f.ranks[i], f.now);
    }
    assert_int_equal(hang_quiet_ms(f.hang, f.now), PERIOD);
    assert_int_equal(hang_tick(f.hang, f.now), HANG_PASSED);
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 39);
    hang_destroy(f.hang);
}

/* Its use counts as little as that of the processor; its memory and a change of its power do. */
static void test_a_gpu(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 2);
    f.ranks[0].has_gpu = f.ranks[1].has_gpu = true;
    f.ranks[0].gpu_power_mw = 122400;
    f.ranks[1].gpu_power_mw = 690000;
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 41); /* it may be high */
    f.ranks[1].gpu_power_mw -= 57000;                      /* less than a twelfth */
    f.ranks[0].gpu_power_mw += 10000;
    assert_int_equal(step(&f), HANG_NOTHING);
    f.ranks[0].gpu_power_mw += 13000;
    assert_int_equal(step(&f), HANG_PASSED);
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 40);
    f.ranks[1].gpu_memory_use = 1;
    assert_int_equal(step(&f), HANG_PASSED);
    assert_int_equal(steps_until(&f, HANG_FOUND, 200), -1); /* as long as it lasts */
    f.ranks[1].gpu_memory_use = 0;
    f.ranks[0].has_gpu = false; /* no answer is no change */
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 40);
    f.ranks[0].has_gpu = true;
    f.ranks[0].gpu_power_mw = 700000; /* nor is the first answer */
    assert_int_equal(step(&f), HANG_NOTHING);
    hang_destroy(f.hang);
}

static void test_more_is_wanted(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 2);
    assert_false(hang_wants_more(f.hang, f.now));
    assert_int_equal(steps_until(&f, HANG_FOUND, 3), -1);
    assert_false(hang_wants_more(f.hang, f.now));
    assert_int_equal(step(&f), HANG_NOTHING);
    assert_true(hang_wants_more(f.hang, f.now));
    f.ranks[1].output++;
    assert_int_equal(step(&f), HANG_NOTHING);
    assert_false(hang_wants_more(f.hang, f.now));
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 40);
    assert_true(hang_wants_more(f.hang, f.now)); /* for the text of the verdict */
    hang_destroy(f.hang);
}

static void test_a_warning_comes_first(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 40, 80, 1);
    assert_int_equal(steps_until(&f, HANG_WARNING, 60), 41);
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 40);
    hang_destroy(f.hang);
    begin(&f, 40, 0, 1);
    assert_int_equal(steps_until(&f, HANG_WARNING, 60), 41);
    assert_int_equal(steps_until(&f, HANG_FOUND, 200), -1);
    hang_destroy(f.hang);
}

static void look(struct fixture *f, int seat, struct hang_look look)
{
    hang_looked(f->hang, seat, &look);
}

static void add(struct hang_sample *to, const struct hang_sample *use)
{
    to->output += use->output;
    to->operations += use->operations;
    to->io_bytes += use->io_bytes;
    to->tcp_data += use->tcp_data;
    to->cpu_us += use->cpu_us;
    to->faults += use->faults;
    to->waits += use->waits;
    to->main_ns += use->main_ns;
    to->receptions += use->receptions;
}

/* One of three ranks does this in every `each` of the periods, and two wait. All looks at it show
 * the same. The period of the verdict; -1: none in so many. */
static int verdict(const struct hang_sample *use, int each, struct hang_look seen, int most)
{
    struct fixture f;
    int found = -1;
    begin(&f, 0, 40, 3);
    for (int i = 0; i < 3; i++)
        f.ranks[i].main_ns = 5; /* its main thread has slept ever since */
    f.ranks[1].receivers = use->receivers;
    for (int i = 1; i <= most && found < 0; i++) {
        if (i % each == 0)
            add(&f.ranks[1], use);
        enum hang_news news = step(&f);
        found = news == HANG_FOUND ? i : -1;
        for (int j = 0; news == HANG_LOOK && j < 3; j++)
            look(&f, j, j == 1 ? seen : (struct hang_look){.main = 99});
    }
    hang_destroy(f.hang);
    return found;
}
#define FOR_EVER 400

/* A rank spins at one place. From some time on, looks cannot show it. */
static void test_looks_that_miss(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 1);
    for (int i = 1; i <= 60; i++) {
        f.ranks[0].cpu_us += 1000000;
        enum hang_news news = step(&f);
        assert_true(news != HANG_FOUND && (news == HANG_LOOK) == (i > 20));
        if (news == HANG_LOOK && i < 40)
            look(&f, 0, (struct hang_look){.main = 1, .main_runs = true});
        else
            hang_missed(f.hang, 0);
    }
    look(&f, 0, (struct hang_look){.main = 1, .main_runs = true});
    f.ranks[0].cpu_us += 1000000;
    assert_int_equal(step(&f), HANG_FOUND);
    hang_missed(f.hang, 9);
    hang_destroy(f.hang);
}

/* Each of these in one rank is progress of the job. */
static void test_progress(void **state)
{
    (void)state;
    const struct hang_sample ways[] = {
        {.output = 1, .main_ns = 1},
        {.operations = 1},
        {.io_bytes = HANG_IO_BYTES},
        {.io_bytes = 110, .main_ns = 1}, /* little by little */
        {.tcp_data = 70000},
        {.tcp_data = 2000, .main_ns = 1},
        {.faults = 64},
        {.faults = 17},
        {.cpu_us = 30000, .waits = 8},
        {.receivers = 1, .receptions = 1, .main_ns = 1},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        assert_int_equal(verdict(&ways[i], 1, (struct hang_look){.main = 1}, FOR_EVER), -1);
    const struct hang_look same = {.main = 1};
    const struct hang_sample seldom = {.io_bytes = 2100, .main_ns = 1};
    assert_int_equal(verdict(&seldom, 20, same, FOR_EVER), -1);
    const struct hang_sample received = {.receptions = 4, .receivers = 1, .main_ns = 1};
    assert_int_equal(verdict(&received, 39, same, FOR_EVER), -1);
}

/* What those do that wait is none, however long it lasts. */
static void test_noise(void **state)
{
    (void)state;
    const struct hang_sample all = {
        .cpu_us = 9000, .waits = 1000, .io_bytes = 60, .faults = 1, .main_ns = 9000000};
    const struct hang_look same = {.main = 1};
    assert_int_equal(verdict(&all, 1, same, FOR_EVER), 41);
    const struct hang_sample turns = {.receptions = 1, .receivers = 1, .main_ns = 1};
    assert_int_equal(verdict(&turns, 11, same, FOR_EVER), 41); /* a heartbeat */
}

/* What came before anybody looked is not new. */
static void test_connections_that_are_seen_at_last(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 1);
    int found = 0;
    for (int i = 0; i < FOR_EVER && found == 0; i++) {
        f.ranks[0].tcp_data = i % 3 == 0 ? 1 << 30 : 0;
        found = step(&f) == HANG_FOUND ? i : 0;
    }
    assert_true(found > 0);
    hang_destroy(f.hang);
}

/* The main thread sleeps, so another one writes. That counts if it may be the one that works. */
static void test_what_helper_threads_write(void **state)
{
    (void)state;
    const struct hang_sample writes = {.output = 50}, logs = {.io_bytes = 300},
                             spins = {.output = 50, .cpu_us = 40000};
    assert_int_equal(verdict(&writes, 1, (struct hang_look){.main = 1}, FOR_EVER), 41);
    assert_int_equal(verdict(&logs, 1, (struct hang_look){.main = 1}, FOR_EVER), 41);
    const struct hang_look waits = {.main = 1, .waits_for_own = true}, unknown = {.main = 0};
    assert_int_equal(verdict(&writes, 1, waits, FOR_EVER), -1);
    assert_int_equal(verdict(&logs, 1, waits, FOR_EVER), -1);
    assert_int_equal(verdict(&writes, 1, unknown, FOR_EVER), -1);
    assert_int_equal(verdict(&logs, 1, unknown, FOR_EVER), -1);
    assert_int_equal(verdict(&spins, 1, (struct hang_look){.main = 1}, FOR_EVER), -1);
}

/* It may belong to what another rank computes at one place for long. */
static void test_a_murmur_while_another_one_spins(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 2);
    f.ranks[0].main_ns = 5;
    for (int i = 0; i < FOR_EVER; i++) {
        f.ranks[0].output++;
        f.ranks[1].cpu_us += 1000000;
        enum hang_news news = step(&f);
        assert_int_not_equal(news, HANG_FOUND);
        for (int j = 0; news == HANG_LOOK && j < 2; j++)
            look(&f, j, (struct hang_look){.main = 1, .main_runs = j == 1});
    }
    hang_destroy(f.hang);
}

/* The main thread of a rank waits, and what else runs in it is seen in these looks, again and
 * again. */
static bool works_aside(const struct hang_look *looks, int count, uint64_t cpu_us)
{
    struct fixture f;
    bool found = false;
    int looked = 0;
    begin(&f, 0, 40, 2);
    for (int i = 0; i < FOR_EVER && !found; i++) {
        f.ranks[0].cpu_us += cpu_us;
        enum hang_news news = step(&f);
        found = news == HANG_FOUND;
        if (news != HANG_LOOK)
            continue;
        look(&f, 0, looks[looked++ % count]);
        look(&f, 1, (struct hang_look){.main = 99});
    }
    hang_destroy(f.hang);
    return !found;
}

static void test_children_and_threads(void **state)
{
    (void)state;
    const struct hang_look computes[] = {{.main = 1, .aside = 5}, {.main = 1, .aside = 6}};
    const struct hang_look unknown[] = {{.main = 1, .unknown = true}};
    const struct hang_look stays[] = {{.main = 1, .aside = 5}};
    const struct hang_look none[] = {{.main = 1}};
    struct hang_look seldom[14];
    for (int i = 0; i < 14; i++)
        seldom[i] = (struct hang_look){.main = 1, .aside = i % 7 == 0 ? (uint64_t)i + 1 : 0};
    const struct hang_look main[] = {{.main = 1, .main_runs = true, .aside = 5},
                                     {.main = 1, .main_runs = true, .aside = 6}};
    assert_true(works_aside(computes, 2, 900000));
    assert_true(works_aside(computes, 2, 15000)); /* many share its processor */
    assert_true(works_aside(unknown, 1, 900000));
    assert_false(works_aside(stays, 1, 900000));
    assert_false(works_aside(none, 1, 900000));   /* threads that are not of Python */
    assert_false(works_aside(seldom, 14, 15000)); /* a progress bar */
    assert_false(works_aside(main, 2, 900000));   /* it spins, and so what it does decides */
    assert_false(works_aside(computes, 2, 5000));
}

/* So many of four ranks, which hardly use the processor, go on to another place now and then. */
static bool stray(int count, int stay)
{
    struct fixture f;
    bool found = false;
    uint64_t looked = 0;
    begin(&f, 0, 40, 4);
    for (int i = 0; i < FOR_EVER && !found; i++) {
        for (int j = 0; j < 4; j++)
            f.ranks[j].main_ns += 50000;
        enum hang_news news = step(&f);
        found = news == HANG_FOUND;
        for (int j = 0; news == HANG_LOOK && j < 4; j++)
            look(&f, j,
                 (struct hang_look){.main = 1 + (j < count ? looked / (uint64_t)stay % 2 : 0)});
        looked += news == HANG_LOOK;
    }
    hang_destroy(f.hang);
    return !found;
}

static void test_places_of_many_ranks(void **state)
{
    (void)state;
    assert_true(stray(4, 3));
    assert_true(stray(2, 3));
    assert_false(stray(1, 3)); /* it tries again and again, and the others wait */
    assert_false(stray(0, 3));
    assert_false(stray(4, 1)); /* the same, in all of them: each is back at the next look */
}

/* A rank that only uses the processor: `places` of its looks, one after the other. -1: no verdict.
 */
static int spin(const uint64_t *places, int count)
{
    struct fixture f;
    int looks = 0, found = -1;
    begin(&f, 0, 40, 2);
    for (int i = 1; i <= 100 && found < 0; i++) {
        f.ranks[0].cpu_us += 1000000;
        enum hang_news news = step(&f);
        if (news == HANG_FOUND)
            found = i;
        if (news == HANG_LOOK) {
            assert_in_range(i, 21, 100); /* not before a half of the limit: a look costs */
            assert_int_equal(hang_way(f.hang, 0), HANG_SPINS);
            look(&f, 0, (struct hang_look){.main = places[looks++ % count], .main_runs = true});
            look(&f, 1, (struct hang_look){.main = 99});
        }
    }
    hang_destroy(f.hang);
    return found;
}

static void test_a_rank_that_spins(void **state)
{
    (void)state;
    const uint64_t one[] = {7}, none[] = {0}, some[] = {7, 7, 7, 8}, late[] = {7, 7, 7, 7, 7, 0};
    assert_int_equal(spin(one, 1), 41);
    assert_int_equal(spin(none, 1), -1);
    assert_int_equal(spin(some, 4), -1);
    assert_int_equal(spin(late, 6), -1);
}

/* The samples of a short limit, on a host with too many processes: each sees a part of a tick or
 * two. The stack cannot be read. Returns whether that counts as a hang. */
static bool spin_slowly(uint64_t cpu_us)
{
    struct fixture f;
    bool found = false;
    begin(&f, 0, 2, 1);
    for (int i = 0; i < 100 && !found; i++) {
        f.ranks[0].cpu_us += cpu_us;
        f.now += HANG_PERIOD_MIN_MS;
        hang_sample(f.hang, 0, &f.ranks[0], f.now);
        enum hang_news news = hang_tick(f.hang, f.now);
        found = news == HANG_FOUND;
        if (news == HANG_LOOK)
            look(&f, 0, (struct hang_look){.main = 0});
    }
    hang_destroy(f.hang);
    return found;
}

static void test_a_rank_that_spins_slowly(void **state)
{
    (void)state;
    assert_false(spin_slowly(20000));
    assert_false(spin_slowly(10000));
    assert_true(spin_slowly(1000)); /* this one waits, and looks at a clock */
}

/* A debugger, a host that stands still, a worker that is replaced, and a rank that is new. */
static void test_what_is_no_silence(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 2);
    f.ranks[0].held = true;
    assert_int_equal(steps_until(&f, HANG_FOUND, 100), -1);
    f.ranks[0].held = false;
    assert_int_equal(steps_until(&f, HANG_FOUND, 30), -1);
    f.count = 1; /* no sample of rank 1 */
    assert_int_equal(steps_until(&f, HANG_FOUND, 100), -1);
    f.count = 2;
    assert_int_equal(steps_until(&f, HANG_FOUND, 40), -1);
    hang_seat(f.hang, 1, 0);
    hang_seat(f.hang, 1, 1);
    assert_int_equal(steps_until(&f, HANG_FOUND, 40), -1);
    hang_seat(f.hang, 1, 0); /* it has ended, and the other one still waits */
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 40);
    hang_destroy(f.hang);
}

static void no_news(struct fixture *f, int periods)
{
    for (int i = 0; i < periods; i++)
        assert_int_equal(step(f), HANG_NOTHING);
}

/* Its host is too busy to say anything, perhaps with the evidence. That is no progress of its rank,
 * and no silence. */
static void test_no_sample_after_the_news(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 40, 80, 2);
    assert_int_equal(steps_until(&f, HANG_WARNING, 60), 41);
    f.count = 1;
    no_news(&f, 100);
    f.count = 2;
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 41); /* the first one is late */
    f.count = 1;
    no_news(&f, 100);
    f.count = 2;
    no_news(&f, 10);
    f.count = 1;
    no_news(&f, 10);
    f.count = 2;
    f.ranks[1].output++; /* meanwhile */
    assert_int_equal(step(&f), HANG_PASSED);
    f.count = 1;
    assert_int_equal(steps_until(&f, HANG_WARNING, 100), -1); /* as before any news */
    hang_destroy(f.hang);
}

/* All workers are replaced between two ticks, and the new ones have shown as much as the old ones
 * had: that is another hang, which begins with the first look at them. */
static void test_other_workers_that_look_the_same(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 2);
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 41);
    hang_seat(f.hang, 0, 2);
    hang_seat(f.hang, 1, 2);
    assert_int_equal(hang_quiet_ms(f.hang, f.now), 0);
    assert_int_equal(step(&f), HANG_PASSED);
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 40);
    hang_seat(f.hang, 0, 3);
    hang_seat(f.hang, 1, 3);
    f.ranks[0] = f.ranks[1] = (struct hang_sample){.cpu_us = 10000}; /* they have not begun */
    assert_int_equal(step(&f), HANG_PASSED);
    assert_int_equal(steps_until(&f, HANG_FOUND, 200), -1);
    hang_destroy(f.hang);
}

/* It worked for longer than the limit, and the others waited for it. They need time to go on. */
static void test_a_rank_that_ends(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 3);
    for (int i = 0; i < 100; i++) {
        f.ranks[1].output++;
        assert_int_equal(step(&f), HANG_NOTHING);
    }
    hang_seat(f.hang, 1, 0);
    assert_int_equal(hang_quiet_ms(f.hang, f.now), 0);
    assert_int_equal(hang_tick(f.hang, f.now), HANG_NOTHING);
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 40);
    hang_seat(f.hang, 1, 0); /* it ends once */
    assert_int_equal(hang_quiet_ms(f.hang, f.now), 40000);
    hang_destroy(f.hang);
}

/* The silence before its end does not count for a warning either. */
static void test_a_rank_that_ends_after_the_verdict(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 40, 80, 2);
    assert_int_equal(steps_until(&f, HANG_WARNING, 60), 41);
    hang_seat(f.hang, 0, 0);
    assert_int_equal(step(&f), HANG_PASSED);
    assert_int_equal(steps_until(&f, HANG_WARNING, 60), 39);
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 40);
    hang_destroy(f.hang);
}

static void test_not_armed(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 40, 1);
    f.ranks[0].cpu_us = 10000;
    f.ranks[0].io_bytes = 8000; /* the loader reads so much for any program */
    assert_int_equal(steps_until(&f, HANG_FOUND, 200), -1);
    f.ranks[0].cpu_us += 40000; /* now it has, and its silence begins */
    assert_int_equal(step(&f), HANG_NOTHING);
    assert_int_equal(hang_quiet_ms(f.hang, f.now), 0);
    hang_destroy(f.hang);
    begin(&f, 0, 40, 1);
    f.ranks[0].cpu_us = 10000;
    f.ranks[0].io_bytes = 64 << 10;
    assert_int_equal(steps_until(&f, HANG_FOUND, 60), 41);
    hang_destroy(f.hang);
}

static void test_periods_and_strangers(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 0, 1, 1);
    assert_int_equal(hang_period_ms(f.hang), HANG_PERIOD_MIN_MS);
    hang_sample(f.hang, 7, &f.ranks[0], 1);
    hang_sample(f.hang, -1, &f.ranks[0], 1);
    hang_looked(f.hang, 7, &(struct hang_look){.main = 1});
    hang_seat(f.hang, 9, 0);
    assert_int_equal(hang_way(f.hang, 9), HANG_MOVES);
    hang_destroy(f.hang);
    begin(&f, 36000, 7200, 0);
    assert_int_equal(hang_period_ms(f.hang), HANG_PERIOD_MAX_MS);
    assert_int_equal(hang_tick(f.hang, 1000000000), HANG_NOTHING); /* no rank runs */
    hang_destroy(f.hang);
}

/* With a limit of 20 minutes and more, the next sample comes 30 s after the question. */
static void test_signs_of_a_long_period(void **state)
{
    (void)state;
    const int64_t asked = 1000, said = 1500, later = asked + HANG_PERIOD_MAX_MS;
    assert_true(hang_sign_is_fresh(later, said, asked));
    assert_false(
        hang_sign_is_fresh(later + HANG_PERIOD_MAX_MS, said, later)); /* it did not answer again */
    assert_true(hang_sign_is_fresh(said + HANG_FRESH_MS - 1, said,
                                   said + 100)); /* late, in short periods */
    assert_false(hang_sign_is_fresh(later, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_wait),
        cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_short_progress_between_two_ticks),
        cmocka_unit_test(test_a_gpu),
        cmocka_unit_test(test_more_is_wanted),
        cmocka_unit_test(test_a_warning_comes_first),
        cmocka_unit_test(test_looks_that_miss),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_what_helper_threads_write),
        cmocka_unit_test(test_connections_that_are_seen_at_last),
        cmocka_unit_test(test_a_murmur_while_another_one_spins),
        cmocka_unit_test(test_children_and_threads),
        cmocka_unit_test(test_places_of_many_ranks),
        cmocka_unit_test(test_a_rank_that_spins),
        cmocka_unit_test(test_what_is_no_silence),
        cmocka_unit_test(test_a_rank_that_spins_slowly),
        cmocka_unit_test(test_no_sample_after_the_news),
        cmocka_unit_test(test_other_workers_that_look_the_same),
        cmocka_unit_test(test_a_rank_that_ends),
        cmocka_unit_test(test_a_rank_that_ends_after_the_verdict),
        cmocka_unit_test(test_not_armed),
        cmocka_unit_test(test_periods_and_strangers),
        cmocka_unit_test(test_signs_of_a_long_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
