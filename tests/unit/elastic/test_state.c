/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "elastic/run.h"

static void test_save_and_restore(void **state)
{
    (void)state;
    struct elastic_state s;
    int numbers[3] = {1, 2, 3};
    double scalar = 0.5;
    elastic_state_init(&s);
    assert_int_equal(elastic_state_add(&s, "numbers", numbers, sizeof(numbers), NULL), 0);
    assert_int_equal(elastic_state_add(&s, "scalar", &scalar, sizeof(scalar), NULL), 0);
    assert_int_equal(elastic_state_add(&s, "nothing", NULL, 0, NULL), 0);
    scalar = 1;
    elastic_state_restore(&s); /* nothing was saved */
    assert_true(scalar == 1);
    assert_int_equal(s.age, 0);
    elastic_state_commit(&s);
    numbers[1] = 20;
    scalar = 7;
    s.age = 9;
    elastic_state_restore(&s);
    assert_int_equal(numbers[1], 2);
    assert_true(scalar == 1);
    assert_int_equal(s.age, 1);
    numbers[1] = 30;
    elastic_state_commit(&s);
    numbers[1] = 40;
    elastic_state_restore(&s);
    assert_int_equal(numbers[1], 30);
    assert_int_equal(s.age, 2);
    elastic_state_destroy(&s);
    elastic_state_destroy(&s);
}

static void expect_refused(struct elastic_state *s, const char *name, void *memory, size_t bytes,
                           const char *text)
{
    struct error err = ERROR_INIT;
    assert_int_equal(elastic_state_add(s, name, memory, bytes, &err), -1);
    assert_non_null(strstr(err.text, text));
}

static void test_bad_entries(void **state)
{
    (void)state;
    struct elastic_state s;
    char longer[ELASTIC_NAME_MAX + 2];
    int number = 0;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    elastic_state_init(&s);
    expect_refused(&s, "", &number, 4, "1 to 255");
    expect_refused(&s, longer, &number, 4, "1 to 255");
    expect_refused(&s, "a", NULL, 4, "no memory");
    assert_int_equal(elastic_state_add(&s, longer + 1, &number, 4, NULL), 0);
    expect_refused(&s, longer + 1, &number, 4, "already");
    elastic_state_save(&s);
    expect_refused(&s, "late", &number, 4, "before the first");
    elastic_state_destroy(&s);
}

static void test_layout(void **state)
{
    (void)state;
    char memory[8];
    struct {
        const char *first, *second;
        size_t bytes;
    } layouts[] = {{"a", "b", 4}, {"a", "b", 5}, {"ab", "", 4}, {"b", "a", 4}, {"a", "c", 4}};
    int64_t seen[5];
    for (size_t i = 0; i < 5; i++) {
        struct elastic_state s;
        elastic_state_init(&s);
        elastic_state_add(&s, layouts[i].first, memory, 8, NULL);
        if (layouts[i].second[0] != '\0')
            elastic_state_add(&s, layouts[i].second, memory, layouts[i].bytes, NULL);
        seen[i] = elastic_state_layout(&s);
        assert_true(seen[i] >= 0);
        for (size_t k = 0; k < i; k++)
            assert_true(seen[k] != seen[i]);
        assert_true(elastic_state_layout(&s) == seen[i]);
        elastic_state_destroy(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_save_and_restore),
        cmocka_unit_test(test_bad_entries),
        cmocka_unit_test(test_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
