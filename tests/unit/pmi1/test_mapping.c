/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "pmi1/engine_test.h"

/* `nodes` has the node of each rank, one digit each. */
static int nodes_of(const char *nodes, int *node_of)
{
    int size = 0;
    for (; nodes[size] != '\0'; size++)
        node_of[size] = nodes[size] - '0';
    return size;
}

static void expect(const char *nodes, const char *expected)
{
    int node_of[64];
    int size = nodes_of(nodes, node_of);
    char *text AUTO_FREE = mapping_text(node_of, size, 1023);
    assert_non_null(text);
    assert_string_equal(text, expected);
}

static void test_blocks(void **state)
{
    (void)state;
    expect("0000", "(vector,(0,1,4))");
    expect("00112233", "(vector,(0,4,2))");
    expect("0000111122", "(vector,(0,2,4),(2,1,2))");
    expect("0112", "(vector,(0,1,1),(1,1,2),(2,1,1))");
    expect("000333", "(vector,(0,1,3),(3,1,3))");
    expect("", "(vector)");
}

static void test_round_the_nodes(void **state)
{
    (void)state;
    expect("012", "(vector,(0,3,1))");
    expect("012012", "(vector,(0,3,1),(0,3,1))");
    expect("01000", "(vector,(0,2,1),(0,1,3))");
    expect("0102", "(vector,(0,2,1),(0,1,1),(2,1,1))");
    expect("10", "(vector,(1,1,1),(0,1,1))");
    expect("001122001122", "(vector,(0,3,2),(0,3,2))");
}

/* As MPICH reads it: block after block, and from the first one again while ranks are left. */
static void check_by_reading(const int *node_of, int size, const char *text)
{
    const char *blocks = strchr(text, ',');
    const char *at = blocks;
    for (int rank = 0; rank < size;) {
        char *after = NULL;
        if (*at != ',')
            at = blocks;
        long first = strtol(at + 2, &after, 10), nodes = strtol(after + 1, &after, 10);
        long ranks = strtol(after + 1, &after, 10);
        assert_int_equal(*after, ')');
        at = after + 1;
        for (long i = 0; i < nodes * ranks && rank < size; i++, rank++)
            assert_int_equal(node_of[rank], first + i / ranks);
    }
}

static void test_many_rounds(void **state)
{
    (void)state;
    int node_of[1000];
    for (int r = 0; r < 1000; r++)
        node_of[r] = r % 7;
    char *text AUTO_FREE = mapping_text(node_of, 1000, 1023);
    assert_string_equal(text, "(vector,(0,7,1))");
    check_by_reading(node_of, 1000, text);
    static const int turn[] = {0, 0, 1, 2, 2, 1, 0};
    for (int r = 0; r < 1000; r++)
        node_of[r] = turn[r % 7];
    char *odd AUTO_FREE = mapping_text(node_of, 1000, 1023);
    assert_string_equal(odd, "(vector,(0,1,2),(1,1,1),(2,1,2),(1,1,1),(0,1,1))");
    check_by_reading(node_of, 1000, odd);
}

static void test_read_back(void **state)
{
    (void)state;
    uint32_t random = 7;
    for (int round = 0; round < 200; round++) {
        int node_of[40];
        int size = 1 + round % 40;
        for (int r = 0; r < size; r++) {
            random = random * 1664525u + 1013904223u;
            node_of[r] = (int)((random >> 24) % (uint32_t)(1 + round % 5));
        }
        char *text AUTO_FREE = mapping_text(node_of, size, 1023);
        assert_non_null(text);
        check_by_reading(node_of, size, text);
    }
}

static void test_too_long(void **state)
{
    (void)state;
    int uneven[450], count = 0;
    for (int node = 0; node < 300; node++) {
        for (int i = 0; i < 1 + node % 2; i++)
            uneven[count++] = node;
    }
    assert_int_equal(count, 450);
    assert_null(mapping_text(uneven, 450, 1023));
    char *text AUTO_FREE = mapping_text((const int[]){0, 0}, 2, 16);
    assert_string_equal(text, "(vector,(0,1,2))");
    assert_null(mapping_text((const int[]){0, 0}, 2, 15));
}

/* What repeats itself is written once when there is no room for all of it, and is read the same. */
static void test_short_of_room(void **state)
{
    (void)state;
    uint32_t random = 11;
    for (int round = 0; round < 300; round++) {
        int node_of[400], length = 2 + round % 11, written = 0;
        for (int r = 0; r < length; r++) {
            random = random * 1664525u + 1013904223u;
            node_of[r] = (int)((random >> 24) % 3);
        }
        for (int r = length; r < 400; r++)
            node_of[r] = node_of[r - length];
        char *text AUTO_FREE = mapping_text(node_of, 400, 150);
        assert_non_null(text);
        check_by_reading(node_of, 400, text);
        for (const char *at = text; *at != '\0'; at++)
            written += *at == '(';
        assert_true(written <= length + 2);
    }
}

/* Whatever the room: a text is right, or there is none. */
static void test_any_room(void **state)
{
    (void)state;
    uint32_t random = 3;
    int made = 0;
    for (int round = 0; round < 3000; round++) {
        int node_of[12], size = 2 + round % 11;
        for (int r = 0; r < size; r++) {
            random = random * 1664525u + 1013904223u;
            node_of[r] = (int)((random >> 24) % 3);
        }
        for (int room = 16; room < 64; room += 8) {
            char *text AUTO_FREE = mapping_text(node_of, size, room);
            if (text == NULL)
                continue;
            made++;
            assert_true(strlen(text) <= (size_t)room);
            check_by_reading(node_of, size, text);
        }
    }
    assert_true(made > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),      cmocka_unit_test(test_round_the_nodes),
        cmocka_unit_test(test_many_rounds), cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_too_long),    cmocka_unit_test(test_short_of_room),
        cmocka_unit_test(test_any_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
