/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated ranks: which ones are far behind, and which ones only look like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "features/straggler/straggler.h"

#define RANKS 8
#define WINDOW 180000
#define PERIOD (WINDOW / STRAGGLER_SAMPLES)

struct world {
    struct stragglers *stragglers;
    double percent[RANKS];
    uint64_t output[RANKS];
    int count;
    int64_t now;
    struct buf said;
};

static void say(void *context, int seat, enum straggler_kind kind, const char *text)
{
    struct world *world = context;
    buf_printf(&world->said, "%d%s %s; ", seat, kind == STRAGGLER_SILENT ? " silent" : "",
               text == NULL ? "over" : text);
}

static void begin(struct world *world, int count)
{
    *world = (struct world){
        .stragglers = stragglers_create(WINDOW), .count = count, .said = BUF_INIT(100000)};
    assert_int_equal(stragglers_period_ms(world->stragglers), PERIOD);
    for (int i = 0; i < count; i++) {
        world->percent[i] = -1;
        stragglers_seat(world->stragglers, i, true);
    }
}

static void end(struct world *world)
{
    stragglers_destroy(world->stragglers);
    buf_destroy(&world->said);
}

/* low .. high, a linear congruential generator. */
static uint64_t draw(uint64_t *state, uint64_t low, uint64_t high)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return low + (*state >> 33) % (high - low + 1);
}

/* Ticks, in each of which rank i gains percents[i] and writes bytes[i]. */
static void pass(struct world *world, int ticks, const double *percents, const uint64_t *bytes)
{
    for (int t = 0; t < ticks; t++) {
        world->now += PERIOD;
        for (int i = 0; i < world->count; i++) {
            if (percents != NULL)
                world->percent[i] = (world->percent[i] < 0 ? 0 : world->percent[i]) + percents[i];
            world->output[i] += bytes != NULL ? bytes[i] : 0;
            stragglers_sample(world->stragglers, i, world->percent[i], world->output[i]);
        }
        stragglers_tick(world->stragglers, world->now, say, world);
    }
}

static void expect(struct world *world, const char *wanted)
{
    assert_string_equal(buf_text(&world->said), wanted);
    buf_clear(&world->said);
}

static void test_progress(void **state)
{
    (void)state;
    struct world world;
    const double even[] = {1, 1, 1, 1}, slow[] = {1, 1, 0.2, 1}, fast[] = {0, 0, 5, 0};
    begin(&world, 4);
    pass(&world, 10, even, NULL);
    expect(&world, "");
    pass(&world, 6, slow, NULL); /* far behind from the second on */
    expect(&world, "");
    pass(&world, 2, slow, NULL);
    expect(&world, "2 it has done 11.6 %, and the others 18.0 %; ");
    pass(&world, 20, slow, NULL); /* once */
    expect(&world, "");
    pass(&world, 10, fast, NULL);
    expect(&world, "2 over; ");
    pass(&world, 80, slow, NULL);
    assert_non_null(strstr(buf_text(&world.said), "2 it has done")); /* and again */
    end(&world);
}

static void test_what_is_not_behind(void **state)
{
    (void)state;
    struct world world;
    const double slow[] = {1, 1, 0.2}, spread[] = {0.4, 0.8, 1.2, 1.6},
                 little[] = {0.01, 0.01, 0.001, 0.01};
    begin(&world, 3); /* of three, nobody can say it */
    pass(&world, 50, slow, NULL);
    expect(&world, "");
    end(&world);
    begin(&world, 4); /* each at its own pace */
    pass(&world, 50, spread, NULL);
    expect(&world, "");
    end(&world);
    begin(&world, 4); /* less than one percent */
    pass(&world, 50, little, NULL);
    expect(&world, "");
    end(&world);
    begin(&world, 4); /* nobody says anything */
    pass(&world, 50, NULL, NULL);
    expect(&world, "");
    end(&world);
}

static void test_output(void **state)
{
    (void)state;
    struct world world;
    const uint64_t all[] = {1000, 900, 1100, 1000, 50}, one_quiet[] = {1000, 0, 1100, 1000, 50},
                   none[] = {0, 0, 0, 0, 0};
    begin(&world, 5); /* the last one never writes much */
    pass(&world, 24, NULL, all);
    expect(&world, "");
    pass(&world, 12, NULL, one_quiet);
    expect(&world, "1 it has written 0 bytes in 3.0 min, and the others 6000; ");
    pass(&world, 12, NULL, none); /* nobody writes: nothing is known */
    expect(&world, "");
    pass(&world, 12, NULL, all);
    expect(&world, "1 over; ");
    end(&world);
    begin(&world, 5); /* it has not written for long enough before */
    pass(&world, 12, NULL, all);
    pass(&world, 24, NULL, one_quiet);
    expect(&world, "");
    end(&world);
}

static void test_a_rank_that_starts_or_ends(void **state)
{
    (void)state;
    struct world world;
    const double slow[] = {1, 1, 0.2, 1, 1};
    begin(&world, 5);
    pass(&world, 30, slow, NULL);
    assert_non_null(strstr(buf_text(&world.said), "2 it has done"));
    buf_clear(&world.said);
    stragglers_seat(world.stragglers, 2, false);
    pass(&world, 30, slow, NULL);
    expect(&world, "2 over; ");
    stragglers_seat(world.stragglers, 9, false);
    stragglers_sample(world.stragglers, 5, 1, 1);
    stragglers_sample(world.stragglers, 9, 1, 1);
    end(&world);
}

/* Between two samples, most seats have got another worker, which has written less. */
static void test_new_workers(void **state)
{
    (void)state;
    struct world world;
    const uint64_t all[] = {1000, 1000, 1000, 1000, 1000};
    begin(&world, 5);
    pass(&world, 24, NULL, all);
    for (int i = 1; i < 5; i++)
        world.output[i] = 0;
    pass(&world, 24, NULL, all);
    expect(&world, "");
    end(&world);
}

/* The machine of hvdrun slept, or the job was suspended. */
static void test_a_gap(void **state)
{
    (void)state;
    struct world world;
    const double even[] = {1, 1, 1, 1}, slow[] = {1, 1, 0.2, 1};
    begin(&world, 4);
    pass(&world, 10, even, NULL);
    pass(&world, 4, slow, NULL);
    world.now += 10 * WINDOW;
    pass(&world, 5, slow, NULL);
    expect(&world, "");
    pass(&world, 5, slow, NULL);
    assert_non_null(strstr(buf_text(&world.said), "2 it has done"));
    end(&world);
}

/* Ranks in step, with reports that come early or late, and lines of different lengths. */
static void test_noise(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t rng = seed;
        struct world world;
        double percents[RANKS], done = 0;
        uint64_t bytes[RANKS];
        begin(&world, RANKS);
        double pace = (double)draw(&rng, 1, 200) / 100;
        for (int t = 0; t < 50; t++) {
            done += pace;
            for (int i = 0; i < RANKS; i++) {
                double seen = done - pace * (double)draw(&rng, 0, 100) / 100;
                percents[i] = seen - (world.percent[i] < 0 ? 0 : world.percent[i]);
                bytes[i] = draw(&rng, 100, 300);
            }
            pass(&world, 1, percents, bytes);
        }
        expect(&world, "");
        end(&world);
    }
}

/* A rank that hangs in its imports has never written anything. */
static void test_silent_rank(void **state)
{
    (void)state;
    struct world world;
    begin(&world, 8);
    pass(&world, 6, NULL, (uint64_t[]){9, 9, 9, 0, 9, 9, 9, 9});
    expect(&world, "");
    pass(&world, 6, NULL, (uint64_t[]){9, 9, 9, 0, 9, 9, 9, 9});
    expect(&world, "3 silent it has not written anything yet, and 7 of 8 ranks have; ");
    pass(&world, 60, NULL, (uint64_t[]){9, 9, 9, 0, 9, 9, 9, 9});
    expect(&world, "");
    pass(&world, 1, NULL, (uint64_t[]){9, 9, 9, 1, 9, 9, 9, 9});
    expect(&world, "3 silent over; ");
    pass(&world, 60, NULL, (uint64_t[]){9, 9, 9, 0, 9, 9, 9, 9});
    expect(&world, "");
    end(&world);
}

static void test_rank_without_progress(void **state)
{
    (void)state;
    struct world world;
    begin(&world, 5);
    for (int i = 0; i < 12; i++) {
        pass(&world, 1, NULL, NULL);
        for (int rank = 0; rank < 4; rank++)
            world.percent[rank] = 10;
    }
    expect(&world, "4 silent it has not reported any progress yet, and 4 of 5 ranks have; ");
    stragglers_seat(world.stragglers, 4, false);
    pass(&world, 1, NULL, NULL);
    expect(&world, "4 silent over; ");
    end(&world);
}

/* Where only rank 0 writes, or one rank of each host, silence says nothing. */
static void test_usual_silence(void **state)
{
    (void)state;
    struct world world;
    begin(&world, 8);
    pass(&world, 30, NULL, (uint64_t[]){9, 0, 0, 0, 0, 0, 0, 0});
    pass(&world, 30, NULL, (uint64_t[]){9, 9, 9, 9, 0, 0, 0, 0});
    expect(&world, "");
    end(&world);
    begin(&world, 3);
    pass(&world, 30, NULL, (uint64_t[]){9, 9, 0});
    expect(&world, "");
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_rank),
        cmocka_unit_test(test_rank_without_progress),
        cmocka_unit_test(test_usual_silence),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_what_is_not_behind),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_a_rank_that_starts_or_ends),
        cmocka_unit_test(test_new_workers),
        cmocka_unit_test(test_a_gap),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
