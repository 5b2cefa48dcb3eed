/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loop/channel_invitation.h"

static struct invitation some(size_t count)
{
    struct invitation made = {.count = count};
    memset(made.secret, 7, SECRET_SIZE);
    for (size_t i = 0; i < count; i++)
        made.points[i] = (struct meeting_point){
            i % 3 == 1, {10, 0, 0, (uint8_t)i}, (uint16_t)(1000 + i), i % 3 == 2};
    return made;
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    struct invitation one = some(POINTS_MAX), other;
    AUTO_BUF struct buf message = BUF_INIT(1 << 16);
    invitation_write(&one, &message);
    assert_int_equal(invitation_read(&message, &other), 0);
    assert_int_equal(other.count, POINTS_MAX);
    assert_memory_equal(other.secret, one.secret, SECRET_SIZE);
    for (size_t i = 0; i < POINTS_MAX; i++) {
        assert_int_equal(other.points[i].ipv6, one.points[i].ipv6);
        assert_int_equal(other.points[i].local, one.points[i].local);
        assert_int_equal(other.points[i].port, one.points[i].port);
        assert_memory_equal(other.points[i].address, one.points[i].address, 16);
    }
}

static void test_what_is_not_an_invitation(void **state)
{
    (void)state;
    struct invitation one = some(2), other;
    AUTO_BUF struct buf message = BUF_INIT(1 << 16), part = BUF_INIT(1 << 16);
    invitation_write(&one, &message);
    for (size_t length = 0; length < message.length; length++) {
        buf_clear(&part);
        buf_append(&part, buf_text(&message), length);
        int whole_points = length == SECRET_SIZE + (message.length - SECRET_SIZE) / 2;
        assert_int_equal(invitation_read(&part, &other), whole_points ? 0 : -1);
    }
    while (message.length < 1000) {
        buf_clear(&part);
        buf_append(&part, buf_text(&message) + SECRET_SIZE, (message.length - SECRET_SIZE) / 2);
        buf_append(&message, buf_text(&part), part.length);
    }
    assert_int_equal(invitation_read(&message, &other), -1); /* too many points */
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
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_what_is_not_an_invitation),
        cmocka_unit_test(test_what_a_proof_covers),
        cmocka_unit_test(test_reflection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
