/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/buf.h"
#include "driver/tell/tell.h"
#include "model/hosts/entry.h"

struct fixture {
    struct app_list apps;
    struct plan *plan;
    struct buf out;
};

static struct fixture begin(const char *host_text, int np, bool oversubscribe, int app_count)
{
    struct fixture f = {.out = BUF_INIT(SIZE_MAX / 2)};
    struct host_list hosts = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(hosts_parse(host_text, &hosts, &err), 0);
    for (int a = 0; a < app_count; a++) {
        struct app *app = app_list_add(&f.apps);
        app->np = app_count > 1 ? a + 1 : 0;
        strv_add(&app->argv, a == 0 ? "./train" : "./serve");
    }
    struct plan_request request = {
        .hosts = &hosts, .apps = &f.apps, .np = np, .oversubscribe = oversubscribe};
    f.plan = plan_create(&request, &err);
    assert_non_null(f.plan);
    hosts_destroy(&hosts);
    return f;
}

static void end(struct fixture *f)
{
    plan_destroy(f->plan);
    app_list_destroy(&f->apps);
    buf_destroy(&f->out);
}

static void test_table(void **state)
{
    (void)state;
    struct fixture f = begin("node-with-a-name:2,b:1", 0, false, 2);
    strv_add(&f.apps.items[1].argv, "--note");
    strv_add(&f.apps.items[1].argv, "two words");
    assert_int_equal(dry_run_table(f.plan, &f.apps, &f.out), 0);
    assert_string_equal(buf_text(&f.out),
                        "3 ranks of 2 programs on 2 hosts with 3 slots\n"
                        "RANK  HOST              LOCAL  CROSS  APP  COMMAND\n"
                        "   0  node-with-a-name    0/2    0/2    0  ./train\n"
                        "   1  node-with-a-name    1/2    0/1    1  ./serve --note 'two words'\n"
                        "   2  b                   0/1    1/2    1  ./serve --note 'two words'\n");
    end(&f);
}

static void test_table_of_one(void **state)
{
    (void)state;
    struct fixture f = begin("a", 0, false, 1);
    assert_int_equal(dry_run_table(f.plan, &f.apps, &f.out), 0);
    assert_string_equal(buf_text(&f.out), "1 rank of 1 program on 1 host with 1 slot\n"
                                          "RANK  HOST  LOCAL  CROSS  APP  COMMAND\n"
                                          "   0  a       0/1    0/1    0  ./train\n");
    end(&f);
}

static void test_oversubscription_is_said(void **state)
{
    (void)state;
    struct fixture f = begin("a,b", 3, true, 1);
    assert_int_equal(dry_run_table(f.plan, &f.apps, &f.out), 0);
    assert_non_null(strstr(buf_text(&f.out), "3 ranks of 1 program on 2 hosts with 2 slots, "
                                             "oversubscribed\n"));
    end(&f);
}

static void expect_aligned(const char *hosts, int ranks)
{
    struct fixture f = begin(hosts, 0, false, 1);
    assert_int_equal(dry_run_table(f.plan, &f.apps, &f.out), 0);
    const char *text = strchr(buf_text(&f.out), '\n') + 1;
    const char *column = strstr(text, "COMMAND");
    assert_non_null(column);
    int lines = 0;
    for (const char *line = strchr(text, '\n') + 1; *line != '\0'; line = strchr(line, '\n') + 1) {
        assert_memory_equal(line + (column - text), "./train\n", 8);
        lines++;
    }
    assert_int_equal(lines, ranks);
    end(&f);
}

static void test_wide_numbers_stay_aligned(void **state)
{
    (void)state;
    expect_aligned("a:12345,b", 12346);
    expect_aligned("n[1-12345]", 12345);
}

static const char *last_command(struct fixture *f)
{
    buf_clear(&f->out);
    assert_int_equal(dry_run_table(f->plan, &f->apps, &f->out), 0);
    const char *command = strstr(buf_text(&f->out), "./train");
    assert_non_null(command);
    return command;
}

static void test_commands_are_shortened_and_safe(void **state)
{
    (void)state;
    struct fixture f = begin("a", 0, false, 1);
    struct strv *argv = &f.apps.items[0].argv;
    strv_add(argv, "");
    strv_add(argv, "it's");
    strv_add(argv, "\x1b[31m\n");
    assert_string_equal(last_command(&f), "./train '' 'it'\\''s' '?[31m?'\n");
    strv_destroy(argv);
    strv_add(argv, "./train");
    strv_add(argv, "0123456789012345678901234567890123456789");
    assert_string_equal(last_command(&f), "./train 0123456789012345678901234567890123456789\n");
    strv_add(argv, "x");
    assert_string_equal(last_command(&f), "./train 0123456789012345678901234567890123456...\n");
    /* the cut would fall into a character of two bytes */
    strv_destroy(argv);
    strv_add(argv, "./train");
    strv_add(argv, "01234567890123456789012345678901234\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4");
    assert_string_equal(last_command(&f), "./train '01234567890123456789012345678901234...\n");
    end(&f);
}

static void test_json_bytes(void **state)
{
    (void)state;
    struct fixture f = begin("a:2,b:1", 0, false, 2);
    assert_int_equal(dry_run_json(f.plan, &f.apps, &f.out), 0);
    assert_string_equal(
        buf_text(&f.out),
        "{\n"
        "  \"size\": 3,\n"
        "  \"nodes\": [\n"
        "    {\"name\": \"a\", \"slots\": 2, \"local_size\": 2, \"first_rank\": 0},\n"
        "    {\"name\": \"b\", \"slots\": 1, \"local_size\": 1, \"first_rank\": 2}\n"
        "  ],\n"
        "  \"ranks\": [\n"
        "    {\"rank\": 0, \"host\": \"a\", \"local_rank\": 0, \"local_size\": 2, "
        "\"cross_rank\": 0, \"cross_size\": 2, \"app\": 0, \"app_rank\": 0},\n"
        "    {\"rank\": 1, \"host\": \"a\", \"local_rank\": 1, \"local_size\": 2, "
        "\"cross_rank\": 0, \"cross_size\": 1, \"app\": 1, \"app_rank\": 0},\n"
        "    {\"rank\": 2, \"host\": \"b\", \"local_rank\": 0, \"local_size\": 1, "
        "\"cross_rank\": 1, \"cross_size\": 2, \"app\": 1, \"app_rank\": 1}\n"
        "  ],\n"
        "  \"apps\": [\n"
        "    {\"argv\": [\"./train\"], \"np\": 1},\n"
        "    {\"argv\": [\"./serve\"], \"np\": 2}\n"
        "  ]\n"
        "}\n");
    end(&f);
}

static void test_json_of_a_host_without_ranks(void **state)
{
    (void)state;
    struct fixture f = begin("a,b", 1, false, 1);
    struct host_list hosts = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(hosts_parse("a,b", &hosts, &err), 0);
    plan_destroy(f.plan);
    struct plan_request request = {.hosts = &hosts, .apps = &f.apps, .np = 1, .idle_hosts = true};
    f.plan = plan_create(&request, &err);
    hosts_destroy(&hosts);
    assert_int_equal(dry_run_json(f.plan, &f.apps, &f.out), 0);
    assert_non_null(strstr(buf_text(&f.out),
                           "    {\"name\": \"a\", \"slots\": 1, \"local_size\": 1, "
                           "\"first_rank\": 0},\n"
                           "    {\"name\": \"b\", \"slots\": 1, \"local_size\": 0}\n"));
    end(&f);
}

static void test_json_of_any_arguments(void **state)
{
    (void)state;
    struct fixture f = begin("a", 0, false, 1);
    static const char *const given[] = {"quote\" back\\ new\nline", "\xc3\xa4\xff\xe2\x82", "",
                                        "\xf0\x9f\x98\x80 \xc0\xaf"};
    static const char *const wanted[] = {"quote\" back\\ new\nline",
                                         "\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "",
                                         "\xf0\x9f\x98\x80 \xef\xbf\xbd\xef\xbf\xbd"};
    for (int i = 0; i < 4; i++)
        strv_add(&f.apps.items[0].argv, given[i]);
    assert_int_equal(dry_run_json(f.plan, &f.apps, &f.out), 0);
    json_t *root = json_loadb(buf_text(&f.out), f.out.length, 0, NULL);
    assert_non_null(root);
    json_t *app = json_array_get(json_object_get(root, "apps"), 0);
    assert_int_equal(json_integer_value(json_object_get(app, "np")), 1);
    json_t *argv = json_object_get(app, "argv");
    assert_int_equal(json_array_size(argv), 5);
    for (int i = 0; i < 4; i++)
        assert_string_equal(json_string_value(json_array_get(argv, (size_t)i + 1)), wanted[i]);
    json_decref(root);
    end(&f);
}

static void test_large_plan_and_limit(void **state)
{
    (void)state;
    struct fixture f = begin("n[1-1000]:20", 0, false, 1);
    assert_int_equal(dry_run_json(f.plan, &f.apps, &f.out), 0);
    json_t *root = json_loadb(buf_text(&f.out), f.out.length, 0, NULL);
    assert_non_null(root);
    json_t *ranks = json_object_get(root, "ranks");
    assert_int_equal(json_array_size(ranks), 20000);
    json_t *last = json_array_get(ranks, 19999);
    assert_string_equal(json_string_value(json_object_get(last, "host")), "n1000");
    assert_int_equal(json_integer_value(json_object_get(last, "cross_rank")), 999);
    json_decref(root);
    struct buf small = BUF_INIT(1000);
    assert_int_equal(dry_run_json(f.plan, &f.apps, &small), -1);
    assert_in_range(small.length, 1, 1000);
    buf_clear(&small);
    assert_int_equal(dry_run_table(f.plan, &f.apps, &small), -1);
    buf_destroy(&small);
    struct buf tiny = BUF_INIT(60); /* not even the summary fits beside the header */
    assert_int_equal(dry_run_table(f.plan, &f.apps, &tiny), -1);
    buf_destroy(&tiny);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_of_one),
        cmocka_unit_test(test_oversubscription_is_said),
        cmocka_unit_test(test_wide_numbers_stay_aligned),
        cmocka_unit_test(test_commands_are_shortened_and_safe),
        cmocka_unit_test(test_json_bytes),
        cmocka_unit_test(test_json_of_a_host_without_ranks),
        cmocka_unit_test(test_json_of_any_arguments),
        cmocka_unit_test(test_large_plan_and_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
