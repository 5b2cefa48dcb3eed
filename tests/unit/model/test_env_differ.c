/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "model/env/rank_variables.h"

static void put(void *context, const char *name, const char *host, const char *value)
{
    buf_printf(context, "%s %s=%s; ", host, name, value == NULL ? "(unset)" : value);
}

static void expect(const struct env_of_host *hosts, size_t count, const char *wanted)
{
    struct buf text AUTO_BUF = BUF_INIT(100000);
    env_differ(hosts, count, put, &text);
    assert_string_equal(buf_text(&text), wanted);
}

static void test_differences(void **state)
{
    (void)state;
    struct strv a AUTO_STRV = STRV_INIT, b AUTO_STRV = STRV_INIT, c AUTO_STRV = STRV_INIT;
    const struct env_of_host hosts[] = {{"a", &a}, {"b", &b}, {"c", &c}};
    expect(hosts, 3, "");
    const char *const same[] = {"PATH=/bin", "LANG=C"};
    for (int i = 0; i < 2; i++) {
        strv_add(&a, same[i]);
        strv_add(&b, same[i]);
        strv_add(&c, same[i]);
    }
    expect(hosts, 3, "");
    strv_add(&a, "RANK=0"); /* what must differ */
    strv_add(&b, "RANK=1");
    strv_add(&b, "OMPI_COMM_WORLD_SIZE=1");
    strv_add(&c, "HVDRUN_HOSTNAME=c");
    strv_add(&c, "PMIX_NAMESPACE=c");
    strv_add(&a, "NCCL_RAS_ADDR=localhost:1");
    strv_add(&b, "NCCL_RAS_ADDR=localhost:2");
    strv_add(&c, "KUBEFLOW_TRAINER_SERVER_URL=http://127.0.0.1:3/progress/1.0");
    expect(hosts, 3, "");
    strv_add(&a, "OMP_NUM_THREADS=1");
    strv_add(&b, "OMP_NUM_THREADS=1");
    strv_add(&c, "OMP_NUM_THREADS=8");
    strv_add(&c, "NCCL_DEBUG=INFO");
    expect(hosts, 3,
           "a OMP_NUM_THREADS=1; b OMP_NUM_THREADS=1; c OMP_NUM_THREADS=8; "
           "a NCCL_DEBUG=(unset); b NCCL_DEBUG=(unset); c NCCL_DEBUG=INFO; ");
    expect(hosts, 1, "");
    expect(hosts, 0, "");
}

static void count(void *context, const char *name, const char *host, const char *value)
{
    (void)name, (void)host, (void)value;
    ++*(int *)context;
}

static void test_limit(void **state)
{
    (void)state;
    struct strv a AUTO_STRV = STRV_INIT, b AUTO_STRV = STRV_INIT;
    const struct env_of_host hosts[] = {{"a", &a}, {"b", &b}};
    int calls = 0;
    for (int i = 0; i < 2 * ENV_DIFFER_MAX; i++)
        strv_printf(&b, "V%d=1", i);
    env_differ(hosts, 2, count, &calls);
    assert_int_equal(calls, 2 * ENV_DIFFER_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
