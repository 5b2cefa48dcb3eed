/* SPDX-License-Identifier: Apache-2.0 */
/* --on-event: which events a command hears of, and how many commands there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/job_fixture.h"
#include "driver/tell/events_command.h"
#include "helpers_fixture.h"

/* The programs run on a loop of their own. */
struct bench {
    struct fixture *f;
    struct loop *loop; /* that of the fixture */
    struct helper_loop children;
    struct events_command *command;
};

static int begin(void **state)
{
    static struct bench bench;
    if (setup(state) < 0)
        return -1;
    bench = (struct bench){.f = *state};
    helper_loop_open(&bench.children);
    bench.loop = bench.f->job.loop;
    bench.f->job.loop = bench.children.loop;
    bench.f->job.own[PART_helpers] = bench.children.helpers;
    bench.f->request.apps = &bench.f->apps;
    *state = &bench;
    return 0;
}

static int end(void **state)
{
    struct bench *bench = *state;
    helper_loop_expect_idle(&bench->children);
    helper_loop_close(&bench->children);
    bench->f->job.loop = bench->loop;
    *state = bench->f;
    return teardown(state);
}

/* Each event becomes a line of the file `heard`. */
static void listen(struct bench *bench)
{
    char *text AUTO_FREE = mem_printf("sh -c 'cat >>%s/heard'", bench->f->folder);
    bench->command = events_command_create(&bench->f->job, text, NULL);
    assert_non_null(bench->command);
}

/* `object` has ' for ". */
static void happens(struct bench *bench, const char *event, const char *object)
{
    char *text AUTO_FREE = mem_strdup(object);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    events_command_take(bench->command, event, json);
    json_decref(json);
}

static void all_over(void *context)
{
    struct bench *bench = context;
    loop_stop(bench->children.loop);
}

/* Waits for all commands. The lines that they have heard; "" for none. The caller frees it. */
static char *heard(struct bench *bench)
{
    if (events_command_finish(bench->command, all_over, bench))
        run_loop(bench->children.loop);
    assert_false(events_command_finish(bench->command, all_over, bench));
    events_command_destroy(bench->command);
    bench->f->job.loop = bench->loop; /* for written() */
    char *text = written(bench->f, "heard");
    bench->f->job.loop = bench->children.loop;
    char *path AUTO_FREE = mem_printf("%s/heard", bench->f->folder);
    unlink(path);
    return text == NULL ? mem_strdup("") : text;
}

static void test_an_event(void **state)
{
    struct bench *bench = *state;
    listen(bench);
    happens(bench, "node_lost", "{'event': 'node_lost', 'time': 17.5, 'host': 'b'}");
    char *text AUTO_FREE = heard(bench);
    assert_int_equal(text[strlen(text) - 1], '\n');
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_non_null(strstr(json_string_value(json_object_get(json, "command")), "./train"));
    json_object_del(json, "command");
    expect_json(json, "{'event': 'host_lost', 'time': 17.5, 'host': 'b', 'job': 'job-1', "
                      "'missed': 0}");
}

static void test_names(void **state)
{
    struct bench *bench = *state;
    static const struct row {
        const char *event, *object, *name; /* NULL: the command does not hear of it */
    } rows[] = {
        {"job_running", "{}", "started"},
        {"hung", "{'epoch': 1}", "hung"},
        {"job_end", "{'status': 0}", "ended"},
        {"epoch", "{'epoch': 1}", NULL},
        {"epoch", "{'epoch': 2}", "restarted"},
        {"worker_exit", "{'exit_code': 3}", "rank_failed"},
        {"worker_exit", "{'exit_code': null, 'signal': 9, 'by_hvdrun': false}", "rank_failed"},
        {"worker_exit", "{'exit_code': 0}", NULL},
        {"worker_exit", "{'exit_code': null, 'signal': 15, 'by_hvdrun': true}", NULL},
        {"node_ready", "{}", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        listen(bench);
        happens(bench, rows[i].event, rows[i].object);
        char *text AUTO_FREE = heard(bench);
        json_t *json = json_loads(text, 0, NULL);
        const char *name = json_string_value(json_object_get(json, "event"));
        assert_string_equal(name == NULL ? "none" : name,
                            rows[i].name == NULL ? "none" : rows[i].name);
        json_decref(json);
    }
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

/* Four run, 32 wait, and the rest is missed; but not the end of the job. */
static void test_too_many(void **state)
{
    struct bench *bench = *state;
    listen(bench);
    for (int i = 0; i < EVENTS_AT_ONCE + EVENTS_WAITING + 7; i++)
        happens(bench, "hung", "{}");
    happens(bench, "job_end", "{}");
    char *text AUTO_FREE = heard(bench);
    assert_int_equal(count_of(text, "\n"), EVENTS_AT_ONCE + EVENTS_WAITING);
    assert_int_equal(count_of(text, "\"missed\":0"), EVENTS_AT_ONCE + EVENTS_WAITING - 1);
    assert_int_equal(count_of(text, "\"ended\""), 1);
    assert_int_equal(count_of(text, "\"missed\":8"), 1); /* the one that made way as well */
}

static void test_a_command_that_fails(void **state)
{
    struct bench *bench = *state;
    bench->command = events_command_create(&bench->f->job, "/no/such/program", NULL);
    happens(bench, "hung", "{}");
    happens(bench, "hung", "{}");
    happens(bench, "job_end", "{}");
    char *text AUTO_FREE = heard(bench);
    assert_string_equal(text, "");
    assert_int_equal(count_of(buf_text(&bench->f->said), "--on-event: "), 1); /* once */
    assert_int_equal(count_of(buf_text(&bench->f->said), "/no/such/program"), 1);
}

static void test_destroy_ends_it(void **state)
{
    struct bench *bench = *state;
    bench->command = events_command_create(&bench->f->job, "sleep 1000", NULL);
    happens(bench, "hung", "{}");
    assert_true(reaper_has_children());
    events_command_destroy(bench->command); /* and end() waits for it */
}

static void test_no_command(void **state)
{
    struct bench *bench = *state;
    struct error err = ERROR_INIT;
    assert_null(events_command_create(&bench->f->job, NULL, &err));
    assert_string_equal(err.text, "");
    assert_null(events_command_create(&bench->f->job, "a 'b", &err));
    assert_true(err.text[0] != '\0');
    happens(bench, "hung", "{}");
    assert_false(events_command_finish(NULL, all_over, bench));
    events_command_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_event, begin, end),
        cmocka_unit_test_setup_teardown(test_names, begin, end),
        cmocka_unit_test_setup_teardown(test_too_many, begin, end),
        cmocka_unit_test_setup_teardown(test_a_command_that_fails, begin, end),
        cmocka_unit_test_setup_teardown(test_destroy_ends_it, begin, end),
        cmocka_unit_test_setup_teardown(test_no_command, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
