/* SPDX-License-Identifier: Apache-2.0 */
/* facts.json: what the hosts say of their GPUs, and that it has a limit whatever they send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/job_fixture.h"
#include "features/evidence/evidence_json_driver.h"

static json_t *facts_of(struct fixture *f, struct evidence_host *hosts)
{
    const struct evidence_answers answers = {.hosts = hosts, .host_count = 2};
    struct evidence_facts facts = {.kind = INCIDENT_FAILURE,
                                   .text = "rank 1 on a exited with code 3",
                                   .rank = 1,
                                   .epoch = 1,
                                   .answers = &answers};
    char *text AUTO_FREE = evidence_json_facts(&f->job, &facts);
    assert_true(strlen(text) < (size_t)4 << 20);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    return root;
}

static void test_gpus(void **state)
{
    struct fixture *f = *state;
    uint64_t ecc[] = {2, UINT64_MAX, 0, 4};
    uint32_t rows[] = {0, 1};
    Hvdrun__GpuHealth full = HVDRUN__GPU_HEALTH__INIT, bare = HVDRUN__GPU_HEALTH__INIT,
                      odd = HVDRUN__GPU_HEALTH__INIT, *list[] = {&full, &bare, &odd};
    Hvdrun__GpuHealths gpus = HVDRUN__GPU_HEALTHS__INIT;
    Hvdrun__Evidence answer = HVDRUN__EVIDENCE__INIT;
    full.uuid = (char *)"GPU-\377"; /* not UTF-8 */
    full.pci = (char *)"00000000:3B:00.0";
    full.has_temperature = full.has_reasons = true;
    full.celsius = 41;
    full.reasons = 0x48 | 1ull << 63;
    full.ecc_errors = ecc;
    full.n_ecc_errors = 4;
    full.remapped_rows = rows;
    full.n_remapped_rows = 2;
    full.remapping_failed = true;
    bare.index = 1;
    bare.trouble = 15;
    odd.index = 2; /* what no agent sends */
    odd.ecc_errors = ecc;
    odd.n_ecc_errors = 3;
    odd.remapped_rows = rows;
    odd.n_remapped_rows = 1;
    odd.trouble = 99;
    gpus.gpus = list;
    gpus.n_gpus = 3;
    struct evidence_host hosts[] = {
        {.answer = &answer, .gpus = &gpus, .gpus_missing = (char *)"it hangs"}, {.answer = NULL}};
    json_t *root = facts_of(f, hosts), *all = json_object_get(root, "hosts");
    expect_json(json_incref(json_object_get(json_array_get(all, 0), "gpus")),
                "[{\"index\": 0, \"uuid\": \"(not UTF-8)\", \"pci\": \"00000000:3B:00.0\", "
                "\"temperature_celsius\": 41, "
                "\"clock_reasons\": [\"hardware slowdown\", \"hardware thermal slowdown\"], "
                "\"ecc_errors\": {\"corrected\": {\"volatile\": 2}, "
                "\"uncorrected\": {\"volatile\": 0, \"aggregate\": 4}}, "
                "\"remapped_rows\": {\"corrected\": 0, \"uncorrected\": 1, "
                "\"pending\": false, \"failed\": true}}, "
                "{\"index\": 1, \"trouble\": \"is lost\"}, {\"index\": 2}]");
    assert_string_equal(json_string_value(json_object_get(json_array_get(all, 0), "gpus_missing")),
                        "it hangs");
    assert_null(json_object_get(json_array_get(all, 1), "gpus"));
    json_decref(root);
}

static Hvdrun__EvidenceItem item(const char *name, const char *text)
{
    Hvdrun__EvidenceItem item = HVDRUN__EVIDENCE_ITEM__INIT;
    item.name = (char *)name;
    item.text = (char *)text;
    return item;
}

/* All of it, for a job in which rank 1 has failed and hvdrun has ended rank 0. */
static void test_all(void **state)
{
    struct fixture *f = *state;
    struct rank_record *records = f->job.ranks.records;
    exits(f, 1, false, 3, 6 * SECOND);
    exits(f, 0, true, SIGKILL, 7 * SECOND);
    records[1].oom = records[1].core = true;
    records[1].output_ns = 5 * SECOND;
    records[0].ended_by_us = true;
    records[2].epoch = 0; /* its epoch has not begun */
    Hvdrun__EvidenceItem memory = item("memory", "MemTotal: 7 kB\n"), *items[] = {&memory};
    Hvdrun__Evidence a = HVDRUN__EVIDENCE__INIT, b = HVDRUN__EVIDENCE__INIT;
    char *variables_of_a[] = {"SAME=x", "OMP_NUM_THREADS=1", "ONLY_A=y"},
         *variables_of_b[] = {"SAME=x", "OMP_NUM_THREADS=8"};
    a.items = items;
    a.n_items = 1;
    a.environment = variables_of_a;
    a.n_environment = 3;
    b.environment = variables_of_b;
    b.n_environment = 2;
    struct evidence_host hosts[] = {{.answer = &a}, {.answer = &b}};
    struct evidence_file files[] = {
        {.node = 1, .rank = -1, .name = (char *)"ras_1.json"},
        {.node = 0, .rank = -1, .missing = (char *)"NCCL does not answer"},
        {.node = 0, .rank = 0, .name = (char *)"flight_recorder/rank_0"},
        {.node = 1, .rank = 2, .missing = (char *)"it wrote none"}};
    struct evidence_answers answers = {
        .hosts = hosts, .host_count = 2, .files = files, .file_count = 4};
    struct evidence_facts facts = {.kind = INCIDENT_HANG,
                                   .text = "rank 0 on a hangs",
                                   .rank = 0,
                                   .when_ns = 1700000008 * SECOND + SECOND / 2,
                                   .epoch = 1,
                                   .answers = &answers,
                                   .by_nccl = true};
    char *text AUTO_FREE = evidence_json_facts(&f->job, &facts);
    assert_int_equal(text[strlen(text) - 1], '\n');
    expect_json(
        json_loads(text, 0, NULL),
        "{'version': 1, 'job': 'job-1', 'time': 1700000008.5, 'kind': 'hang', 'text': 'rank 0 on a "
        "hangs', 'rank': 0, 'rank_by': 'nccl', 'epoch': 1, 'size': 3, 'ranks': ["
        "{'rank': 0, 'host': 'a', 'pid': 100, 'state': 'finished', 'signal': 9, 'ended': "
        "1700000006.0, 'by_hvdrun': true, 'out_of_memory': false, 'core_dumped': false, "
        "'last_output': null}, "
        "{'rank': 1, 'host': 'a', 'pid': 101, 'state': 'finished', 'exit_code': 3, 'ended': "
        "1700000005.0, 'by_hvdrun': false, 'out_of_memory': true, 'core_dumped': true, "
        "'last_output': 1700000004.0}], "
        "'hosts': [{'host': 'a', 'state': 'calling', 'answered': true, 'memory': 'MemTotal: 7 "
        "kB\\n'}, {'host': 'b', 'state': 'calling', 'answered': true, 'ras': 'ras_1.json'}], "
        "'flight_recorder': [{'rank': 0, 'host': 'a', 'file': 'flight_recorder/rank_0'}, "
        "{'rank': 2, 'host': 'b', 'missing': 'it wrote none'}], "
        "'environment': {'OMP_NUM_THREADS': {'a': '1', 'b': '8'}, 'ONLY_A': {'a': 'y', 'b': "
        "null}}}");
    answers.host_count = 1; /* there is nothing to compare with */
    facts.rank = -1;
    facts.by_nccl = false;
    char *other AUTO_FREE = evidence_json_facts(&f->job, &facts);
    json_t *root = json_loads(other, 0, NULL);
    assert_int_equal(json_object_size(json_object_get(root, "environment")), 0);
    assert_true(json_is_null(json_object_get(root, "rank")));
    assert_true(json_is_null(json_object_get(root, "rank_by")));
    json_decref(root);
}

/* Of a long text, the last lines are kept. Of many variables, the first ones. */
static void test_a_limit(void **state)
{
    struct fixture *f = *state;
    struct buf lines AUTO_BUF = BUF_INIT((size_t)8 << 20);
    for (int i = 0; lines.length < (size_t)6 << 20; i++)
        buf_printf(&lines, "line %d\n", i);
    buf_puts(&lines, "the last one\n");
    struct strv variables AUTO_STRV = STRV_INIT;
    char *value AUTO_FREE = mem_alloc(4001);
    memset(value, 'x', 4000);
    for (int i = 0; i < 1000; i++)
        strv_printf(&variables, "VARIABLE_%d=%s", i, value);
    Hvdrun__EvidenceItem first = HVDRUN__EVIDENCE_ITEM__INIT, kernel = HVDRUN__EVIDENCE_ITEM__INIT,
                         *items[] = {&first, &kernel};
    Hvdrun__Evidence one = HVDRUN__EVIDENCE__INIT, other = HVDRUN__EVIDENCE__INIT;
    first.name = (char *)"memory";
    first.text = (char *)"MemTotal: 7 kB\n";
    kernel.name = (char *)"kernel";
    kernel.text = (char *)buf_text(&lines);
    one.items = items;
    one.n_items = 2;
    one.environment = variables.items;
    one.n_environment = variables.count;
    other.environment = variables.items;
    other.n_environment = 1;
    struct evidence_host hosts[] = {{.answer = &one}, {.answer = &other}};
    json_t *root = facts_of(f, hosts), *host = json_array_get(json_object_get(root, "hosts"), 0);
    assert_string_equal(json_string_value(json_object_get(host, "memory")), "MemTotal: 7 kB\n");
    const char *kept = json_string_value(json_object_get(host, "kernel"));
    assert_in_range(strlen(kept), 1000, EVIDENCE_HOSTS_BYTES / 2);
    assert_memory_equal(kept, "line ", 5);
    assert_string_equal(kept + strlen(kept) - strlen("the last one\n"), "the last one\n");
    assert_in_range(json_object_size(json_object_get(root, "environment")), 10, 99);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gpus, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_limit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
