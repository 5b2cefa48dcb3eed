/* SPDX-License-Identifier: Apache-2.0 */
/* The status page as a file: what is in it, that text stays text, and its limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/job/part.h"
#include "driver/tell/recent.h"
#include "driver/tell/stalls.h"
#include "features/metrics/metrics.h"
#include "features/metrics/metrics_driver.h"
#include "features/usage/sampled_fixture.h"

#define MANY 4000

static int begin(void **state)
{
    if (sampled_begin(state) < 0)
        return -1;
    struct job *job = &((struct sampled *)*state)->f->job;
    ((struct sampled *)*state)->f->request.wdir = "/home/me";
    job->own[PART_stall_list] = stall_list_create();
    job->own[PART_rank_tails] = rank_tails_create(3);
    static char page[] = "page.html";
    ((struct sampled *)*state)->f->settings.page_file = page;
    job_history_part.open(job, NULL);
    ((struct sampled *)*state)->f->settings.page_file = NULL;
    job->state = JOB_DONE;
    return 0;
}

static int end(void **state)
{
    struct job *job = &((struct sampled *)*state)->f->job;
    job_history_part.close(job);
    rank_tails_destroy(job_part(job, rank_tails));
    stall_list_destroy(job_part(job, stall_list));
    return sampled_end(state);
}

static void prints(struct job *job, int rank, const char *text)
{
    struct recent_piece piece = {
        .rank = rank, .wall_ns = 1700000007 * SECOND, .text = text, .length = strlen(text)};
    recent_add(job_part(job, recent), &piece);
    rank_tails_add(job_part(job, rank_tails), &piece);
}

static json_t *at(const json_t *root, const char *list, size_t number, const char *key)
{
    json_t *entries = json_object_get(json_object_get(root, "job"), list);
    return json_incref(json_object_get(json_array_get(entries, number), key));
}

/* As in the record of the end, however late it is asked. */
static void test_time_of_the_end(void **state)
{
    struct fixture *f = ((struct sampled *)*state)->f;
    f->job.times.ended_ns = 8500 * SECOND / 1000; /* it began at 1 s */
    json_t *end = page_json_end(&f->job);
    expect_json(json_incref(json_object_get(end, "up_s")), "7.5");
    json_decref(end);
}

/* Rank 2 has failed, and hvdrun has ended the others. */
static void test_a_failure(void **state)
{
    struct sampled *sampled = *state;
    struct fixture *f = sampled->f;
    agents_connect(&sampled->agents, 0);
    sampler_ask(sampled->sampler, NULL, NULL);
    sampled_answer(sampled, 1000000);
    prints(&f->job, 0, "hello\n");
    exits(f, 2, false, 3, 6 * SECOND);
    for (int rank = 0; rank < 2; rank++) {
        f->job.ranks.records[rank].ended_by_us = true;
        exits(f, rank, true, SIGTERM, 7 * SECOND);
    }
    f->job.verdict = (struct verdict){.status = 3, .cause = CAUSE_EXIT, .first_seat = 2};
    json_t *root = page_file_json(&f->job);
    expect_json(at(root, "ranks", 0, "rank"), "2");
    expect_json(at(root, "ranks", 1, "rank"), "0");
    expect_json(at(root, "ranks", 1, "state"), "'ended'");
    expect_json(at(root, "ranks", 1, "resident_bytes"), "4096"); /* what was known last */
    assert_null(at(root, "ranks", 1, "signal"));
    assert_null(at(root, "ranks", 0, "exit_code")); /* the next list has it */
    const json_t *failed = json_object_get(json_object_get(root, "end"), "ranks");
    assert_int_equal(json_array_size(failed), 1);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(failed, 0), "exit_code")),
                     3);
    expect_json(
        json_incref(json_object_get(root, "outputs")),
        "{'0': {'rank': 0, 'lines': [{'time': 1700000007.0, 'rank': 0, 'text': 'hello'}]}}");
    expect_json(json_incref(json_object_get(root, "left_out")),
                "{'ranks': 0, 'hosts': 0, 'outputs': 0}");
    json_decref(root);
}

static char *written_page(struct fixture *f)
{
    f->settings.page_file = mem_printf("%s/page.html", f->folder);
    page_file_part.tell(&f->job);
    return written(f, "page.html");
}

static int count(const char *text, const char *word)
{
    int found = 0;
    for (text = strstr(text, word); text != NULL; text = strstr(text + 1, word))
        found++;
    return found;
}

/* Nothing that a rank prints can end the element in which the data are. */
static void test_text_stays_text(void **state)
{
    static const char evil[] = "</script><script>window.evil = 1</script><!-- \xe2\x80\xa8 "
                               "\xe2\x80\xa9 \xe2\x80\xaa -->\n";
    struct fixture *f = ((struct sampled *)*state)->f;
    char *before AUTO_FREE = written_page(f);
    f->settings.job_name = mem_strdup("</script><img src=x onerror=alert(1)>");
    free(f->settings.page_file);
    prints(&f->job, 1, evil);
    char *text AUTO_FREE = written_page(f);
    assert_int_equal(count(text, "</script"), 2);
    assert_int_equal(count(text, "<script"), 2);
    assert_int_equal(count(text, "<!--"), count(before, "<!--"));
    assert_int_equal(count(text, "window.evil"), 3); /* of all, of the rank, at the end */
    assert_int_equal(count(text, "<img"), 0);
    assert_int_equal(count(text, "\\u2028 \\u2029 \xe2\x80\xaa"), 3);
    const char *data = strstr(text, "<script id=\"kept\" type=\"application/json\">");
    assert_non_null(data);
    data = strchr(data, '>') + 1;
    json_t *root = json_loadb(data, (size_t)(strstr(data, "</script>") - data), 0, NULL);
    assert_non_null(root);
    const json_t *lines = json_object_get(json_object_get(root, "output"), "lines");
    const char *line = json_string_value(json_object_get(json_array_get(lines, 0), "text"));
    assert_memory_equal(line, evil, sizeof(evil) - 2);
    json_decref(root);
}

/* A job of 4,000 ranks that all print long lines. */
static void test_limits(void **state)
{
    struct fixture *f = ((struct sampled *)*state)->f;
    struct job *job = &f->job;
    rank_tails_destroy(job_part(job, rank_tails));
    job->own[PART_rank_tails] = rank_tails_create(MANY);
    char *line AUTO_FREE = mem_alloc(4001);
    memset(line, '\x1b', 3999); /* six bytes of JSON each */
    line[3999] = '\n';
    for (int rank = 3; rank < MANY; rank++) {
        struct rank_record *record = rank_table_seat(&job->ranks, rank);
        record->rank = rank;
        record->epoch = 1;
        rank_started(&job->ranks, rank, 100 + rank, 5 * SECOND);
    }
    for (int rank = 0; rank < MANY; rank++) {
        job->ranks.records[rank].epoch = 1;
        if (rank < 3)
            exits(f, rank, false, 0, 6 * SECOND);
        else
            job->ranks.records[rank].state = RANK_FINISHED;
        prints(job, rank, line);
    }
    job->ranks.records[MANY - 1].code = 7;
    json_t *root = page_file_json(job);
    expect_json(at(root, "ranks", 0, "rank"), "3999");
    expect_json(at(root, "ranks", 1, "rank"), "0");
    size_t ranks = json_array_size(json_object_get(json_object_get(root, "job"), "ranks"));
    size_t outputs = json_object_size(json_object_get(root, "outputs"));
    const json_t *left_out = json_object_get(root, "left_out");
    assert_true(ranks > 100 && ranks <= PAGE_FILE_RANKS);
    assert_int_equal(json_integer_value(json_object_get(left_out, "ranks")), MANY - ranks);
    assert_true(outputs > 10 && outputs < ranks);
    assert_int_equal(json_integer_value(json_object_get(left_out, "outputs")), ranks - outputs);
    assert_non_null(json_object_get(json_object_get(root, "outputs"), "3999"));
    json_decref(root);
    char *text AUTO_FREE = written_page(f);
    assert_non_null(text);
    assert_true(strlen(text) > PAGE_FILE_OUTPUT_BYTES && strlen(text) < PAGE_FILE_MAX / 4);
}

static void test_nobody_wants_it(void **state)
{
    struct fixture *f = ((struct sampled *)*state)->f;
    page_file_part.tell(&f->job);
    expect_written(f, "page.html", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_failure, begin, end),
        cmocka_unit_test_setup_teardown(test_time_of_the_end, begin, end),
        cmocka_unit_test_setup_teardown(test_text_stays_text, begin, end),
        cmocka_unit_test_setup_teardown(test_limits, begin, end),
        cmocka_unit_test_setup_teardown(test_nobody_wants_it, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
