/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 4648, section 10, and the two signs that its words do not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/ssh_module/fields.h"

static const char *const pairs[][2] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xff\xbf", "+/+/"},
};

static void to_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        size_t length = strlen(pairs[i][0]);
        unsigned char own[8]; /* what is behind the bytes must not matter */
        memset(own, 0xff, sizeof(own));
        memcpy(own, pairs[i][0], length);
        AUTO_BUF struct buf out = BUF_INIT(100);
        assert_int_equal(base64_append(&out, own, length), 0);
        assert_string_equal(buf_text(&out), pairs[i][1]);
    }
}

static void from_text(void **state)
{
    (void)state;
    unsigned char out[32];
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        size_t length = strlen(pairs[i][0]);
        assert_int_equal(base64_decode(pairs[i][1], strlen(pairs[i][1]), out), length);
        assert_memory_equal(out, pairs[i][0], length);
    }
    assert_int_equal(base64_decode(" Zm\r\n9v\tYg = =\n", 15, out), 4);
    assert_memory_equal(out, "foob", 4);
    static const char *const bad[] = {
        "Z",    "Zm",   "Zm9",   "Zg=",  "Zg===", "Zg=a",  "=Zg=",
        "Zm-v", "Zm_v", "Zm9v=", "====", "Z===",  "Zm9*v", "Zm9vYg==Z"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(base64_decode(bad[i], strlen(bad[i]), out), -1);
    assert_int_equal(base64_decode("Zm\0v", 4, out), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_text),
        cmocka_unit_test(from_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
