/* SPDX-License-Identifier: Apache-2.0 */
/* What the options say to the elastic core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/elastic/parts.h"

static struct elastic_config config_of(const char *after)
{
    struct settings settings;
    struct host_list hosts = {0};
    settings_init(&settings);
    if (after != NULL)
        assert_int_equal(
            settings_set(&settings, OPT_blacklist_after, after, SOURCE_FLAG, "x", NULL), 0);
    const struct job_request request = {.hosts = &hosts, .settings = &settings};
    const struct job job = {.request = &request, .settings = &settings};
    struct elastic_config config;
    elastic_config_from(&job, &config);
    settings_destroy(&settings);
    return config;
}

static void test_failures_until_the_blacklist(void **state)
{
    (void)state;
    assert_int_equal(config_of(NULL).failure_limit, 3);
    assert_int_equal(config_of("1").failure_limit, 1);
    assert_int_equal(config_of("7").failure_limit, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures_until_the_blacklist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
