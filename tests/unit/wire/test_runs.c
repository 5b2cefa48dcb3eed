/* SPDX-License-Identifier: Apache-2.0 */
/* Regular lists: packed and back, and what is not packed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/packing.h"

#define COUNT(items) (sizeof(items) / sizeof((items)[0]))

/* The list as the wire brings it: each text from malloc, and no end. */
static char **received(char *const *items, size_t count)
{
    char **list = mem_array(count > 0 ? count : 1, sizeof(*list));
    for (size_t i = 0; i < count; i++)
        list[i] = mem_strdup(items[i]);
    return list;
}

static void release(char **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

/* `packed`: how many texts it has to become. */
static void expect_back(char *const *texts, size_t count, size_t packed)
{
    AUTO_STRV struct strv out = STRV_INIT;
    text_runs_pack(texts, count, &out);
    assert_int_equal(out.count, packed);
    size_t back = out.count;
    char **list = received(out.items, out.count);
    assert_int_equal(text_runs_expand(&list, &back, count), 0);
    assert_int_equal(back, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(list[i], texts[i]);
    release(list, back);
}

static void test_texts(void **state)
{
    (void)state;
    static char *const kept_width[] = {"n08", "n09", "n10", "n11"};
    static char *const longer[] = {"n8", "n9", "n10"};
    static char *const domain[] = {"ip-10-0-0-9.ec2.internal", "ip-10-0-0-10.ec2.internal"};
    static char *const addresses[] = {"10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1"};
    static char *const nines[] = {"99", "100", "101"};
    static char *const mixed[] = {"login", "a1", "a2", "b2", "b3", "b5", "", "", "a3", "a3"};
    static char *const equal[] = {"::1", "::1", "::1", "::2", "::3"};
    static char *const middle[] = {"r1-x7", "r2-x7", "r3-x7", "r3-x8"};
    expect_back(kept_width, COUNT(kept_width), 1);
    expect_back(longer, COUNT(longer), 1);
    expect_back(domain, COUNT(domain), 1);
    expect_back(addresses, COUNT(addresses), 2);
    expect_back(nines, COUNT(nines), 1);
    expect_back(mixed, COUNT(mixed), 6);
    expect_back(equal, COUNT(equal), 2);
    expect_back(middle, COUNT(middle), 2);
    expect_back(middle, 1, 1);
    expect_back(middle, 0, 0);
}

/* A name of 255 bytes may count, but a longer text only stands for itself. */
static void test_long_texts(void **state)
{
    (void)state;
    for (int length = 250; length < 260; length++) {
        char one[300], two[300];
        char *texts[] = {one, two};
        snprintf(one, sizeof(one), "%0*d", length, 8);
        snprintf(two, sizeof(two), "%0*d", length, 9);
        expect_back(texts, 2, length < 255 ? 1 : 2);
        texts[1] = one;
        expect_back(texts, 2, length < 255 ? 1 : 2);
    }
}

static void test_many(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    char **texts = mem_array(MANY, sizeof(*texts));
    for (int i = 0; i < MANY; i++)
        texts[i] = mem_printf("node%04d.cluster7", i);
    expect_back(texts, MANY, 1);
    for (int i = 0; i < MANY; i++)
        snprintf(texts[i], 15, "10.1.%d.%d", i / 250, i % 250);
    expect_back(texts, MANY, MANY / 250);
    release(texts, MANY);
}

static void test_rubbish(void **state)
{
    (void)state;
    static char *const wrong[] = {
        "n1\t",
        "n1\t2\t",
        "n1\t2\t9",
        "n1\t1\t0",
        "n1\t0\t0",
        "n1\t-1\t0",
        "n1\t2\t1",
        "n\t2\t0",
        "\t2\t0",
        "n1\t11\t0",
        "n1\t2\t-1",
        "n1\t2\tx",
        "n1\tx\t0",
        "n1\t2\t0\t",
        "n1\t 2\t0",
        "n1\t99999999999999999999999999\t0",
        "n1\t9223372036854775807\t0",
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        size_t count = 1;
        char **list = received(&wrong[i], 1);
        assert_int_equal(text_runs_expand(&list, &count, 10), -1);
        assert_int_equal(count, 1);
        assert_string_equal(list[0], wrong[i]);
        release(list, count);
    }
    static char *const too_many[] = {"n1\t5\t0", "m5\t5", "o"};
    size_t count = 3;
    char **list = received(too_many, 3);
    assert_int_equal(text_runs_expand(&list, &count, 10), -1);
    assert_int_equal(text_runs_expand(&list, &count, 11), 0);
    assert_int_equal(count, 11);
    assert_string_equal(list[9], "m5");
    release(list, count);
}

static void test_numbers(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {8, 8, 8, 4, 8, 0, 0};
    uint32_t *pairs = mem_array(2 * COUNT(numbers), sizeof(*pairs));
    size_t count = number_runs_pack(numbers, COUNT(numbers), pairs);
    assert_int_equal(count, 8);
    assert_int_equal(number_runs_expand(&pairs, &count, 6), -1);
    assert_int_equal(number_runs_expand(&pairs, &count, 7), 0);
    assert_int_equal(count, COUNT(numbers));
    assert_memory_equal(pairs, numbers, sizeof(numbers));
    assert_int_equal(number_runs_expand(&pairs, &count, 100), -1); /* not pairs */
    free(pairs);
    pairs = NULL;
    count = 0;
    assert_int_equal(number_runs_pack(numbers, 0, NULL), 0);
    assert_int_equal(number_runs_expand(&pairs, &count, 7), 0);
    assert_int_equal(count, 0);
    static const uint32_t wrong[][4] = {{1, 0, 2, 1}, {1, UINT32_MAX, 1, 2}, {1, 8, 1, 8}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        pairs = mem_dup(wrong[i], sizeof(wrong[i]));
        count = 4;
        assert_int_equal(number_runs_expand(&pairs, &count, 10), -1);
        free(pairs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_long_texts),
                                       cmocka_unit_test(test_many), cmocka_unit_test(test_rubbish),
                                       cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
