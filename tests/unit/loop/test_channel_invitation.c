/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loop/channel_invitation.h"

static struct invitation some(uint32_t count)
{
    struct invitation made = {.count = count};
    memset(made.secret, 7, SECRET_SIZE);
    for (size_t i = 0; i < count; i++)
        made.points[i] =
            (struct meeting_point){POINT_IPV4, {10, 0, 0, (uint8_t)i}, (uint16_t)(1000 + i)};
    return made;
}

/* A proof is right for one secret, one point, one rank and two nonces. */
static void test_what_a_proof_covers(void **state)
{
    (void)state;
    struct invitation one = some(2), other = some(2);
    struct introduction said = {.point = 1, .rank = 0x01020304}, heard = {.point = 1};
    uint8_t hello[HELLO_SIZE], welcome[HMAC_SIZE];
    said.root_nonce[0] = heard.root_nonce[0] = 1;
    said.member_nonce[0] = 2;
    hello_write(&one, &said, hello);
    assert_true(hello_read(&one, hello, &heard));
    assert_int_equal(heard.rank, said.rank);
    assert_memory_equal(heard.member_nonce, said.member_nonce, NONCE_SIZE);
    welcome_write(&one, &heard, welcome);
    assert_true(welcome_is_right(&one, &said, welcome));

    for (size_t i = 0; i < HELLO_SIZE; i++) {
        hello[i] ^= 1;
        assert_false(hello_read(&one, hello, &heard));
        hello[i] ^= 1;
    }
    struct introduction at_another = {.point = 0, .root_nonce = {1}};
    struct introduction later = {.point = 1, .root_nonce = {3}};
    other.secret[SECRET_SIZE - 1] ^= 1;
    assert_false(hello_read(&one, hello, &at_another));
    assert_false(hello_read(&one, hello, &later));
    assert_false(hello_read(&other, hello, &heard));
    assert_false(welcome_is_right(&other, &said, welcome));
    assert_false(welcome_is_right(&one, &later, welcome));
}

/* What one side proves is not a proof of the other one. */
static void test_reflection(void **state)
{
    (void)state;
    struct invitation one = some(1);
    struct introduction said = {.rank = 1};
    uint8_t hello[HELLO_SIZE];
    hello_write(&one, &said, hello);
    assert_false(welcome_is_right(&one, &said, hello + HELLO_SIZE - HMAC_SIZE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_proof_covers),
        cmocka_unit_test(test_reflection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
