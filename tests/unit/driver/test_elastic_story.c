/* SPDX-License-Identifier: Apache-2.0 */
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
#include "driver/tell/events.h"

/* A story whose events go to a file. */
static struct elastic_story *begin(struct fixture *f)
{
    f->settings.events = mem_printf("%s/events", f->folder);
    assert_int_equal(events_part.open(&f->job, NULL), 0);
    return elastic_story_create(&f->job);
}

static void end(struct fixture *f, struct elastic_story *story)
{
    elastic_story_destroy(story);
    events_part.close(&f->job);
}

/* The events so far, without their times. */
static void expect_events(struct fixture *f, const char *wanted)
{
    char *text AUTO_FREE = written(f, "events");
    json_t *list = json_array();
    json_error_t behind;
    for (const char *at = text; *at != '\0'; at += behind.position + 1) {
        json_t *event = json_loads(at, JSON_DISABLE_EOF_CHECK, &behind);
        assert_true(json_real_value(json_object_get(event, "time")) > 1e9);
        json_object_del(event, "time");
        json_array_append_new(list, event);
    }
    expect_json(list, wanted);
}

static void expect_last(const struct elastic_story *story, const char *wanted)
{
    const struct elastic_facts facts = {.epochs = 1};
    json_t *status = json_object();
    elastic_story_status(story, &facts, status);
    json_t *last = json_incref(json_object_get(status, "events"));
    json_decref(status);
    for (size_t i = 0; i < json_array_size(last); i++) {
        json_t *line = json_array_get(last, i);
        assert_true(json_real_value(json_object_get(line, "time")) > 1e9);
        json_object_del(line, "time");
    }
    expect_json(last, wanted);
}

static void expect_said(struct fixture *f, const char *wanted)
{
    assert_string_equal(buf_text(&f->said), wanted);
    buf_clear(&f->said);
}

/* The second epoch: host b was lost, which was noticed after 0.5 s. */
static const struct elastic_facts after_loss = {.epoch = 2,
                                                .size = 2,
                                                .host_count = 1,
                                                .mode = ELASTIC_REJOIN,
                                                .cause = "lost b: no heartbeat",
                                                .happened_ms = 1000,
                                                .detected_ms = 1500,
                                                .agreed_ms = 1750,
                                                .planned_ms = 2000,
                                                .started_ms = 3000,
                                                .resumed_ms = 3250,
                                                .epochs = 2,
                                                .hosts_lost = 1,
                                                .lost_ms = 2250};
static int host_a[] = {0}, both_hosts[] = {0, 1};

static void test_first_epoch(void **state)
{
    struct fixture *f = *state;
    struct elastic_story *story = begin(f);
    struct elastic_facts facts = {.epoch = 1,
                                  .size = 3,
                                  .host_count = 2,
                                  .mode = ELASTIC_AUTO,
                                  .detected_ms = 100,
                                  .planned_ms = 350,
                                  .started_ms = 850,
                                  .resumed_ms = 1850,
                                  .epochs = 1};
    struct elastic_plan plan = {.epoch = 1, .size = 3, .host_count = 2, .hosts = both_hosts};
    f->job.nodes[1]->host[0] = '\377';    /* not UTF-8 */
    elastic_story_met(story, &facts, 50); /* there is no epoch yet */
    elastic_story_resumed(story, &facts, &plan);
    elastic_story_met(story, &facts, 2000);
    elastic_story_end(story, &facts); /* one epoch: nothing to sum up */
    expect_said(f, "epoch 1: 3 ranks on 2 hosts\n");
    expect_last(story, "[{'text': 'epoch 1: 3 ranks on 2 hosts'}]");
    expect_events(f, "[{'event': 'epoch', 'epoch': 1, 'size': 3, 'hosts': ['a', '(not UTF-8)'],"
                     "  'mode': 'auto', 'cause': '', 'lost_s': 0.0,"
                     "  'phases': {'detect_s': 0.0, 'agree_s': 0.0, 'plan_s': 0.25,"
                     "             'start_s': 0.5, 'resumed_s': 1.0}},"
                     " {'event': 'epoch_met', 'epoch': 1, 'met_s': 0.0}]");
    end(f, story);
}

static void test_after_a_loss(void **state)
{
    struct fixture *f = *state;
    char report[] = "report.json";
    f->settings.report = report;
    struct elastic_story *story = begin(f);
    struct elastic_plan plan = {.epoch = 2, .size = 2, .host_count = 1, .hosts = host_a};
    elastic_story_resumed(story, &after_loss, &plan);
    elastic_story_met(story, &after_loss, 5000);
    elastic_story_end(story, &after_loss);
    expect_said(f, "epoch 2: 2 ranks on 1 host (lost b: no heartbeat; started after 2.25 s)\n"
                   "epoch 2: all ranks are connected, 4.00 s after the failure\n"
                   "2 epochs: 0 crashes, 1 host lost, 0 preempted, 0 joined; the changes took "
                   "4.00 s in total\n");
    expect_last(story, "[{'text': 'epoch 2: 2 ranks on 1 host (lost b: no heartbeat; started "
                       "after 2.25 s)'},"
                       " {'text': 'epoch 2: all ranks are connected, 4.00 s after the failure'}]");
    expect_events(f, "[{'event': 'epoch', 'epoch': 2, 'size': 2, 'hosts': ['a'],"
                     "  'mode': 'rejoin', 'cause': 'lost b: no heartbeat', 'lost_s': 2.25,"
                     "  'phases': {'detect_s': 0.5, 'agree_s': 0.25, 'plan_s': 0.25,"
                     "             'start_s': 1.0, 'resumed_s': 0.25}},"
                     " {'event': 'epoch_met', 'epoch': 2, 'met_s': 4.0}]");
    json_t *root = json_object();
    elastic_story_report(story, &after_loss, root);
    expect_json(root, "{'elastic': {'epochs': 2, 'crashes': 0, 'hosts_lost': 1, 'preemptions': 0,"
                      " 'grown': 0, 'lost_s': 4.0, 'not_listed': 0, 'list': ["
                      "  {'epoch': 2, 'size': 2, 'hosts': ['a'], 'mode': 'rejoin',"
                      "   'cause': 'lost b: no heartbeat', 'lost_s': 4.0, 'met_s': 4.0,"
                      "   'phases': {'detect_s': 0.5, 'agree_s': 0.25, 'plan_s': 0.25,"
                      "              'start_s': 1.0, 'resumed_s': 0.25}}]}}");
    end(f, story);
    f->settings.report = NULL;
}

/* Only an epoch after a new crash or loss comes after a failure. */
static void test_after_a_change(void **state)
{
    struct fixture *f = *state;
    struct elastic_story *story = begin(f);
    struct elastic_plan plan = {.epoch = 2, .size = 2, .host_count = 1, .hosts = host_a};
    struct elastic_facts facts = after_loss;
    elastic_story_resumed(story, &facts, &plan);
    buf_clear(&f->said);
    facts.epoch = 3;
    facts.size = 1;
    snprintf(facts.cause, sizeof(facts.cause), "added c");
    elastic_story_resumed(story, &facts, &plan);
    elastic_story_met(story, &facts, 3500);
    expect_said(f, "epoch 3: 1 rank on 1 host (added c; started after 2.25 s)\n"
                   "epoch 3: all ranks are connected, 2.50 s after the change\n");
    facts.crashes = 1;
    facts.happened_ms = 4000; /* later than the resume: the clock of another host */
    elastic_story_resumed(story, &facts, &plan);
    elastic_story_met(story, &facts, 4500);
    expect_said(f, "epoch 3: 1 rank on 1 host (added c; started after 0.00 s)\n"
                   "epoch 3: all ranks are connected, 0.50 s after the failure\n");
    facts = (struct elastic_facts){
        .epochs = 3, .crashes = 1, .hosts_lost = 2, .preemptions = 3, .grown = 4, .lost_ms = 500};
    elastic_story_end(story, &facts);
    expect_said(f, "3 epochs: 1 crash, 2 hosts lost, 3 preempted, 4 joined; the changes took "
                   "2.00 s in total\n"); /* 0.5 s, and until the ranks met 0.25 s and 1.25 s */
    json_t *root = json_object();        /* without --report, none is kept */
    elastic_story_report(story, &facts, root);
    expect_json(root, "{'elastic': {'epochs': 3, 'crashes': 1, 'hosts_lost': 2, 'preemptions': 3,"
                      " 'grown': 4, 'lost_s': 2.0, 'not_listed': 3, 'list': []}}");
    end(f, story);
}

/* Notes are events; the last ten lines of all are kept, and text that is not UTF-8 is left out. */
static void test_notes(void **state)
{
    struct fixture *f = *state;
    struct elastic_story *story = begin(f);
    elastic_story_note(story, "draining b");
    elastic_story_note(story, "not UTF-8: \377");
    expect_last(story, "[{'text': 'draining b'}]");
    expect_events(f, "[{'event': 'notice', 'text': 'draining b'}]");
    for (int i = 0; i < 10; i++) {
        char line[16];
        snprintf(line, sizeof(line), "%d", i);
        elastic_story_note(story, line);
    }
    expect_last(story, "[{'text': '0'}, {'text': '1'}, {'text': '2'}, {'text': '3'},"
                       " {'text': '4'}, {'text': '5'}, {'text': '6'}, {'text': '7'},"
                       " {'text': '8'}, {'text': '9'}]");
    end(f, story);
    elastic_story_destroy(NULL);
}

/* The report of a large job with many epochs stays small. */
static void test_many_hosts(void **state)
{
    enum { HOSTS = 60000 };
    struct fixture *f = *state;
    f->settings.report = mem_strdup("report.json");
    struct elastic_story *story = begin(f);
    int *hosts AUTO_FREE = mem_array(HOSTS, sizeof(*hosts)); /* all of them are a */
    struct elastic_facts facts = {.epoch = 1, .size = HOSTS, .host_count = HOSTS, .epochs = 2};
    struct elastic_plan plan = {.epoch = 1, .size = HOSTS, .host_count = HOSTS, .hosts = hosts};
    elastic_story_resumed(story, &facts, &plan);
    elastic_story_resumed(story, &facts, &plan);
    json_t *root = json_object();
    elastic_story_report(story, &facts, root);
    const json_t *part = json_object_get(root, "elastic");
    assert_int_equal(json_array_size(json_object_get(part, "list")), 1);
    assert_int_equal(json_integer_value(json_object_get(part, "not_listed")), 1);
    json_decref(root);
    end(f, story);
}

/* With many hosts, their names are most of an epoch: each exists once. */
static void test_names_are_shared(void **state)
{
    struct fixture *f = *state;
    f->settings.report = mem_strdup("report.json");
    struct elastic_story *story = begin(f);
    int order[] = {1, 0};
    struct elastic_facts facts = {.epoch = 1, .size = 2, .host_count = 2, .epochs = 2};
    struct elastic_plan first = {.epoch = 1, .size = 2, .host_count = 2, .hosts = order};
    struct elastic_plan second = {.epoch = 2, .size = 2, .host_count = 2, .hosts = both_hosts};
    elastic_story_resumed(story, &facts, &first);
    elastic_story_resumed(story, &facts, &second);
    json_t *root = json_object();
    elastic_story_report(story, &facts, root);
    const json_t *list = json_object_get(json_object_get(root, "elastic"), "list");
    for (size_t node = 0; node < 2; node++) {
        const json_t *before = json_object_get(json_array_get(list, 0), "hosts");
        const json_t *after = json_object_get(json_array_get(list, 1), "hosts");
        assert_string_equal(json_string_value(json_array_get(after, node)),
                            f->job.nodes[node]->host);
        assert_ptr_equal(json_array_get(before, 1 - node), json_array_get(after, node));
    }
    json_decref(root);
    end(f, story);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_epoch), TEST(test_after_a_loss),     TEST(test_after_a_change),
        TEST(test_many_hosts),  TEST(test_names_are_shared), TEST(test_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
