/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "features/hang/expect.h"
#include "features/hang/hang.h"

static struct expects *create(const char *first, const char *second)
{
    struct strv texts = STRV_INIT;
    struct expects *expects;
    struct error err = ERROR_INIT;
    strv_add(&texts, first);
    if (second != NULL)
        strv_add(&texts, second);
    assert_int_equal(expects_create(&texts, "--expect", &expects, &err), 0);
    strv_destroy(&texts);
    return expects;
}

static void say(struct expects *expects, int seat, const char *text, int64_t now_ms)
{
    expects_bytes(expects, seat, 0, text, strlen(text), now_ms);
}

static void refused(const char *text, const char *why)
{
    struct strv texts = STRV_INIT;
    struct expects *expects;
    struct error err = ERROR_INIT;
    strv_add(&texts, text);
    assert_int_equal(expects_create(&texts, "--expect", &expects, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_null(expects);
    if (strstr(err.text, why) == NULL)
        fail_msg("%s: %s", text, err.text);
    strv_destroy(&texts);
}

static void test_wrong_texts(void **state)
{
    (void)state;
    char long_text[EXPECT_PATTERN_MAX + 10] = {0};
    memset(long_text, 'x', EXPECT_PATTERN_MAX + 1);
    memcpy(long_text + EXPECT_PATTERN_MAX + 1, ":1s", 4);
    refused("step", "--expect: 'step': expected REGEX:TIME");
    refused("step:", "expected REGEX:TIME");
    refused("step:soon", "expected REGEX:TIME");
    refused("step:0", "expected REGEX:TIME");
    refused(":10s", "expected REGEX:TIME");
    refused("step [:10s", "--expect: 'step [': ");
    refused("step (:10s", "--expect: 'step (': ");
    refused("step)|(x:10s", "a ')' has no '('");
    refused("(a)\\1:10s", "\\1 are not supported");
    refused("a{1001}:10s", "multiply to more than 1000");
    refused("((a{100}){100}){100}:10s", "multiply to more than 1000");
    refused("(a{1,255}){9}:10s", "multiply to more than 1000");
    refused("x*:10s", "every line matches it");
    refused(long_text, "longer than 256 bytes");
}

static void test_what_is_accepted(void **state)
{
    (void)state;
    const char *const texts[] = {"[(]a:1s",          "\\(a\\):1s", "[]{99}{99}]x:1s",
                                 "[[:digit:](]+:2m", "^step:1s",   "loss: [0-9.]+:1h",
                                 "a{,3}b:1s",        "x\\{9:1s"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        expects_destroy(create(texts[i], NULL));
    struct expects *expects = NULL;
    struct strv none = STRV_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(expects_create(&none, "--expect", &expects, &err), 0);
    assert_null(expects);
    assert_int_equal(expects_shortest_ms(NULL), 0);
    assert_null(expects_at(NULL, 0));
    assert_int_equal(expects_overdue(NULL, 1000), -1);
    expects_destroy(NULL);
    struct strv many = STRV_INIT;
    for (int i = 0; i <= EXPECT_MAX; i++)
        strv_add(&many, "x:1s");
    assert_int_equal(expects_create(&many, "--expect", &expects, &err), -1);
    assert_non_null(strstr(err.text, "at most 16"));
    strv_destroy(&many);
}

static void test_overdue(void **state)
{
    (void)state;
    struct expects *expects = create("^step [0-9]+:10s", "saved:60s");
    assert_int_equal(expects_shortest_ms(expects), 10000);
    const struct expect *first = expects_at(expects, 0), *second = expects_at(expects, 1);
    assert_null(expects_at(expects, 2));
    assert_string_equal(second->pattern, "saved");
    assert_int_equal(second->limit_ms, 60000);
    say(expects, 0, "starting step 1\n", 1000);
    assert_int_equal(expects_overdue(expects, 100000), -1); /* not armed */
    assert_false(first->met);
    say(expects, 3, "step 1\nx", 100000);
    assert_true(first->met);
    assert_false(second->met);
    assert_int_equal(first->last_ms, 100000);
    assert_int_equal(expects_overdue(expects, 109999), -1);
    assert_int_equal(expects_overdue(expects, 110000), 0);
    say(expects, 1, "step 2\n", 109000); /* any rank */
    assert_int_equal(expects_overdue(expects, 110000), -1);
    expects_restart(expects, 115000);
    assert_int_equal(expects_overdue(expects, 124999), -1);
    assert_true(expects_is_overdue(expects, 0, 125000));
    expects_disarm(expects);
    assert_int_equal(expects_overdue(expects, 999999), -1);
    expects_destroy(expects);
}

static int64_t met_at(struct expects *expects)
{
    const struct expect *expect = expects_at(expects, 0);
    return expect->met ? expect->last_ms : -1;
}

static void test_lines(void **state)
{
    (void)state;
    struct expects *expects = create("^ab$:1s", NULL);
    say(expects, 0, "a", 1);
    expects_bytes(expects, 0, 1, "b\n", 2, 2); /* another stream */
    say(expects, 1, "b\n", 2);
    assert_int_equal(met_at(expects), -1);
    say(expects, 0, "b", 3);
    assert_int_equal(met_at(expects), -1); /* it has no end yet */
    say(expects, 0, "\nab\n", 4);
    assert_int_equal(met_at(expects), 4);
    say(expects, 0, "x\rab\rabc", 5); /* a progress bar */
    assert_int_equal(met_at(expects), 5);
    say(expects, 0, "\n\n\n", 6);
    assert_int_equal(met_at(expects), 5);
    expects_bytes(expects, 0, 0, "a\0b\nab\n", 7, 7);
    assert_int_equal(met_at(expects), 7);
    expects_destroy(expects);
    expects = create("^[.]:1s", NULL);
    say(expects, 0, ".\n", 8);
    assert_int_equal(met_at(expects), 8);
    expects_destroy(expects);
}

/* Of a long line, only the beginning counts, however it comes. */
static void test_long_lines(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 3 * EXPECT_LINE_MAX; piece = piece * 3 + 1) {
        struct expects *expects = create("^x+y:1s", NULL), *late = create("z:1s", NULL);
        char line[2 * EXPECT_LINE_MAX];
        memset(line, 'x', sizeof(line));
        line[EXPECT_LINE_MAX - 1] = 'y';
        line[EXPECT_LINE_MAX] = 'z';
        line[sizeof(line) - 1] = '\n';
        for (size_t at = 0; at < sizeof(line); at += piece) {
            size_t part = sizeof(line) - at < piece ? sizeof(line) - at : piece;
            expects_bytes(expects, 0, 0, line + at, part, 5);
            expects_bytes(late, 0, 0, line + at, part, 5);
        }
        assert_int_equal(met_at(expects), 5);
        assert_int_equal(met_at(late), -1);
        expects_destroy(expects);
        expects_destroy(late);
    }
}

/* A pattern that a matcher with backtracking, or one that keeps all states, cannot afford. */
static void test_a_costly_pattern(void **state)
{
    (void)state;
    struct expects *expects = create("(a|ab|b)*(aa|a){30}c$:1s", NULL);
    char line[EXPECT_LINE_MAX];
    for (size_t i = 0; i < sizeof(line); i++)
        line[i] = "ab"[(i * 2654435761u >> 13) & 1];
    line[sizeof(line) - 1] = '\n';
    for (int i = 0; i < 100; i++)
        expects_bytes(expects, 0, 0, line, sizeof(line), i);
    assert_int_equal(met_at(expects), -1);
    say(expects, 0, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac\n", 200);
    assert_int_equal(met_at(expects), 200);
    expects_destroy(expects);
}

struct job {
    struct hang *hang;
    struct expects *expects;
    struct hang_sample samples[2];
    int64_t now;
};

static void seats(struct job *job)
{
    hang_seat(job->hang, 0, 1);
    hang_seat(job->hang, 1, 1);
}

static void begin_empty(struct job *job, int64_t hang_ms)
{
    struct hang_limits limits = {0, hang_ms};
    *job = (struct job){.expects = create("step:40s", NULL), .now = 1000};
    job->hang = hang_create(&limits, job->expects);
    assert_int_equal(hang_period_ms(job->hang), 1000);
}

static void begin(struct job *job, int64_t hang_ms)
{
    begin_empty(job, hang_ms);
    seats(job);
}

static void end(struct job *job)
{
    hang_destroy(job->hang);
    expects_destroy(job->expects);
}

/* Seconds until a verdict, while all ranks use the processor and print other lines; -1: none in
 * `most`. `seats`: those that can be heard. */
static int run(struct job *job, int most, int seats)
{
    for (int i = 1; i <= most; i++) {
        job->now += 1000;
        for (int seat = 0; seat < seats; seat++) {
            job->samples[seat].output += 10;
            hang_sample(job->hang, seat, &job->samples[seat], job->now);
        }
        if (hang_tick(job->hang, job->now) == HANG_FOUND)
            return i;
    }
    return -1;
}

static void test_verdict(void **state)
{
    (void)state;
    struct job job;
    begin(&job, 0);
    assert_int_equal(run(&job, 200, 2), -1);
    say(job.expects, 1, "step\n", job.now);
    assert_int_equal(run(&job, 100, 2), 40);
    assert_int_equal(hang_unmet(job.hang), 0);
    assert_int_equal(run(&job, 100, 2), -1); /* once */
    say(job.expects, 1, "step\n", job.now);
    assert_int_equal(hang_tick(job.hang, job.now), HANG_PASSED);
    assert_int_equal(hang_unmet(job.hang), -1);
    assert_int_equal(run(&job, 100, 2), 40); /* and again */
    hang_seat(job.hang, 1, 0);               /* that is not progress */
    assert_int_equal(hang_tick(job.hang, job.now), HANG_NOTHING);
    assert_int_equal(hang_unmet(job.hang), -1);
    end(&job);
}

/* Nobody knows what a rank has printed from which no sample comes. */
static void test_silent_hosts(void **state)
{
    (void)state;
    struct job job;
    begin(&job, 0);
    say(job.expects, 1, "step\n", job.now);
    assert_int_equal(run(&job, 39, 2), -1);
    assert_int_equal(run(&job, 200, 1), -1);
    assert_int_equal(run(&job, 39, 2), -1); /* the time begins again */
    assert_int_equal(run(&job, 10, 2), 2);
    end(&job);
}

static void test_a_rank_that_starts_or_ends(void **state)
{
    (void)state;
    struct job job;
    begin(&job, 0);
    say(job.expects, 1, "step\n", job.now);
    assert_int_equal(run(&job, 10, 2), -1);
    hang_seat(job.hang, 1, 0);
    assert_int_equal(run(&job, 100, 1), -1);
    say(job.expects, 0, "step\n", job.now);
    assert_int_equal(run(&job, 100, 1), 40);
    end(&job);
}

/* All ranks have printed before anybody looks at them. */
static void test_lines_before_the_first_sample(void **state)
{
    (void)state;
    struct job job;
    begin_empty(&job, 0);
    say(job.expects, 1, "step\n", job.now);
    seats(&job);
    assert_int_equal(run(&job, 100, 2), 41); /* the time begins with the first sample */
    hang_seat(job.hang, 1, 0);
    say(job.expects, 0, "step\n", job.now);
    hang_seat(job.hang, 1, 1); /* a later one has to begin first */
    assert_int_equal(run(&job, 100, 2), -1);
    end(&job);
}

static void test_a_debugger(void **state)
{
    (void)state;
    struct job job;
    begin(&job, 0);
    say(job.expects, 1, "step\n", job.now);
    job.samples[0].held = true;
    assert_int_equal(run(&job, 100, 2), -1);
    job.samples[0].held = false;
    assert_int_equal(run(&job, 100, 2), 40);
    end(&job);
}

/* One hang, one verdict, whatever finds it first. */
static void test_with_silence(void **state)
{
    (void)state;
    struct job job;
    begin(&job, 50000);
    say(job.expects, 1, "step\n", job.now);
    assert_int_equal(run(&job, 30, 2), -1);
    int found = 0;
    for (int i = 0; i < 200; i++) {
        job.now += 1000;
        for (int seat = 0; seat < 2; seat++)
            hang_sample(job.hang, seat, &job.samples[seat], job.now);
        found += hang_tick(job.hang, job.now) == HANG_FOUND;
    }
    assert_int_equal(found, 1);
    assert_int_equal(hang_unmet(job.hang), 0);
    end(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_texts),
        cmocka_unit_test(test_what_is_accepted),
        cmocka_unit_test(test_overdue),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_a_costly_pattern),
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_silent_hosts),
        cmocka_unit_test(test_a_rank_that_starts_or_ends),
        cmocka_unit_test(test_lines_before_the_first_sample),
        cmocka_unit_test(test_a_debugger),
        cmocka_unit_test(test_with_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
