/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/plan/plan.h"

static void test_list(void **state)
{
    (void)state;
    struct app_list list = {0};
    for (int i = 0; i < 20; i++) {
        struct app *app = app_list_add(&list);
        assert_int_equal(list.count, i + 1);
        assert_ptr_equal(app, &list.items[i]);
        assert_null(app->wdir); /* a new one is empty, whatever stood there before */
        assert_int_equal(app->np, 0);
        assert_int_equal(app->argv.count, 0);
        assert_int_equal(app->env.count, 0);
        strv_printf(&app->argv, "./program%d", i);
        strv_env_set(&app->env, "I", "x");
        app->wdir = i % 2 == 0 ? mem_printf("/folder%d", i) : NULL;
        app->np = i;
    }
    for (int i = 0; i < 20; i++) {
        char *wanted AUTO_FREE = mem_printf("./program%d", i);
        assert_string_equal(list.items[i].argv.items[0], wanted);
        assert_int_equal(list.items[i].np, i);
    }
    app_list_destroy(&list);
    assert_int_equal(list.count, 0);
    app_list_destroy(&list);
    assert_non_null(app_list_add(&list)); /* ready for use again */
    assert_int_equal(list.count, 1);
    app_list_destroy(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
