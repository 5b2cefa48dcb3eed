/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the hosts that nobody has listed an elastic job takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "driver/elastic/parts.h"
#include "driver/job/part.h"
#include "driver/job_fixture.h"
#include "unit.h"

#define START_NS (100 * SECOND)

struct open_job {
    struct elastic_hub *hub;
    struct elastic_source *source;
    const char *why;
    int max_np;
};

static void act(void *context, const struct elastic_action *action)
{
    (void)context, (void)action;
}

static void listed(void *context)
{
    (void)context;
}

static void begin(struct fixture *f, struct open_job *open, int max_np)
{
    static const struct elastic_hub_ops ops = {.act = act, .listed = listed};
    struct elastic_config config;
    elastic_config_init(&config);
    config.np = config.min_np = 1;
    config.max_np = max_np;
    config.failure_limit = 1;
    config.hosts_dial_in = true;
    unit_clock_stop(START_NS, START_NS);
    open->max_np = max_np;
    open->hub = elastic_hub_create(&f->job, &config, &ops, NULL);
    open->source = elastic_source_create(open->hub, NULL);
    assert_non_null(open->source);
}

static void end(struct open_job *open)
{
    elastic_source_destroy(open->source);
    elastic_hub_destroy(open->hub);
    unit_clock_run();
}

static int come(struct open_job *open, const char *name)
{
    return elastic_source_come(open->source, name, open->max_np, &open->why);
}

static void happens(struct open_job *open, enum elastic_event_kind kind, const char *host)
{
    const struct elastic *core = elastic_hub_core(open->hub);
    elastic_hub_feed(open->hub, &(struct elastic_event){.kind = kind,
                                                        .host = elastic_host_number(core, host),
                                                        .text = host,
                                                        .deadline_ms = -1});
}

/* An agent may name any deadline; one beyond all time is still one. */
static void test_a_deadline_beyond_all_time(void **state)
{
    struct fixture *f = *state;
    struct open_job open;
    begin(f, &open, 2);
    assert_int_equal(come(&open, "a"), 0);
    happens(&open, ELASTIC_HOST_CAME, "a");
    const struct elastic *core = elastic_hub_core(open.hub);
    void *before = f->job.kind_data;
    f->job.kind_data = mem_alloc(4096); /* begins with the parts */
    *(struct elastic_parts *)f->job.kind_data =
        (struct elastic_parts){.job = &f->job, .hub = open.hub, .core = core};
    part_open(&f->job, PART_warning, &warning_part, NULL);
    Hvdrun__Terminate message = HVDRUN__TERMINATE__INIT;
    message.why = (char *)"maintenance";
    message.has_deadline = true;
    message.within_ms = INT64_MAX;
    struct agent_frame frame = {.message = &message};
    assert_int_equal(elastic_kind.frames[FRAME_TERMINATE].take(&f->job, f->job.nodes[0], &frame),
                     0);
    struct elastic_host_facts facts = elastic_host_facts(core, elastic_host_number(core, "a"));
    assert_true(facts.drain_deadline_ms > job_running_ms(&f->job));
    part_close(&f->job, PART_warning, &warning_part);
    free(f->job.kind_data);
    f->job.kind_data = before;
    end(&open);
}

static void test_as_many_as_max_np(void **state)
{
    struct open_job open;
    begin(*state, &open, 2);
    assert_int_equal(come(&open, "a"), 0);
    assert_int_equal(come(&open, "b"), 0);
    assert_int_equal(come(&open, "c"), -1);
    assert_non_null(strstr(open.why, "--max-np"));
    happens(&open, ELASTIC_HOST_CAME, "a");
    happens(&open, ELASTIC_HOST_CAME, "b");
    assert_int_equal(come(&open, "c"), -1);
    elastic_source_leave(open.source, "b");
    happens(&open, ELASTIC_HOST_LOST, "b");
    assert_int_equal(come(&open, "c"), 0);
    end(&open);
}

/* Whoever cannot be used, or does not come, does not take the place of others. */
static void test_a_blacklisted_host_takes_no_place(void **state)
{
    struct open_job open;
    begin(*state, &open, 2);
    assert_int_equal(come(&open, "a"), 0);
    assert_int_equal(come(&open, "b"), 0);
    happens(&open, ELASTIC_HOST_CAME, "a");
    happens(&open, ELASTIC_HOST_CAME, "b");
    happens(&open, ELASTIC_UNKILLED, "b");
    const struct elastic *core = elastic_hub_core(open.hub);
    struct elastic_host_facts facts = elastic_host_facts(core, elastic_host_number(core, "b"));
    assert_int_equal(facts.state, ELASTIC_HOST_UP);
    assert_int_not_equal(facts.blacklisted_until_ms, 0);
    assert_int_equal(come(&open, "c"), 0);
    end(&open);
}

static void test_a_slow_one_takes_no_place(void **state)
{
    struct open_job open;
    begin(*state, &open, 1);
    assert_int_equal(come(&open, "a"), 0);
    assert_int_equal(come(&open, "b"), -1);
    unit_clock_stop(START_NS + 60 * SECOND, START_NS + 60 * SECOND);
    happens(&open, ELASTIC_TICK, "a");
    assert_int_equal(come(&open, "b"), 0);
    end(&open);
}

static void test_not_for_ever_new_names(void **state)
{
    struct open_job open;
    begin(*state, &open, 0);
    for (int i = 0; i < ELASTIC_STRANGERS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof(name), "pod-%d", i);
        assert_int_equal(come(&open, name), 0);
        elastic_source_leave(open.source, name);
    }
    assert_int_equal(come(&open, "pod-x"), -1);
    assert_non_null(strstr(open.why, "too many hosts"));
    assert_int_equal(come(&open, "pod-0"), 0); /* it is known */
    end(&open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_as_many_as_max_np, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_blacklisted_host_takes_no_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_slow_one_takes_no_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_for_ever_new_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_deadline_beyond_all_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
