/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of RFC 4231. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

struct vector {
    size_t key_length;
    uint8_t key_byte; /* repeated; 0: key_text is the key */
    const char *key_text;
    size_t length;
    uint8_t byte;
    const char *text;
    const char *mac; /* a beginning of it where the RFC truncates */
};

static const struct vector vectors[] = {
    {20, 0x0b, NULL, 8, 0, "Hi There",
     "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
    {4, 0, "Jefe", 28, 0, "what do ya want for nothing?",
     "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
    {20, 0xaa, NULL, 50, 0xdd, NULL,
     "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
    {25, 0,
     "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17"
     "\x18\x19",
     50, 0xcd, NULL, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
    {20, 0x0c, NULL, 20, 0, "Test With Truncation", "a3b6167473100ee06e0c796c2955552b"},
    {131, 0xaa, NULL, 54, 0, "Test Using Larger Than Block-Size Key - Hash Key First",
     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    {131, 0xaa, NULL, 152, 0,
     "This is a test using a larger than block-size key and a larger than block-size data. The key "
     "needs to be hashed before being used by the HMAC algorithm.",
     "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
};

static void test_rfc_4231(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        const struct vector *v = &vectors[i];
        uint8_t key[131], bytes[152], mac[HMAC_SIZE];
        char text[2 * HMAC_SIZE + 1];
        memset(key, v->key_byte, sizeof(key));
        if (v->key_text != NULL)
            memcpy(key, v->key_text, v->key_length);
        memset(bytes, v->byte, sizeof(bytes));
        if (v->text != NULL) {
            assert_int_equal(strlen(v->text), v->length);
            memcpy(bytes, v->text, v->length);
        }
        hmac_sha256(key, v->key_length, bytes, v->length, mac);
        for (size_t at = 0; at < sizeof(mac); at++)
            snprintf(text + 2 * at, 3, "%02x", mac[at]);
        text[strlen(v->mac)] = '\0';
        assert_string_equal(text, v->mac);
    }
}

static void test_equal(void **state)
{
    (void)state;
    uint8_t one[HMAC_SIZE] = {1, 2, 3}, other[HMAC_SIZE] = {1, 2, 3};
    assert_true(hmac_equal(one, other));
    for (size_t i = 0; i < HMAC_SIZE; i++) {
        other[i] ^= 0x80;
        assert_false(hmac_equal(one, other));
        other[i] ^= 0x80;
    }
}

static void test_no_key_and_no_bytes(void **state)
{
    (void)state;
    uint8_t mac[HMAC_SIZE];
    static const uint8_t start[4] = {0xb6, 0x13, 0x67, 0x9a};
    hmac_sha256(NULL, 0, NULL, 0, mac);
    assert_memory_equal(mac, start, sizeof(start));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc_4231),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_no_key_and_no_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
