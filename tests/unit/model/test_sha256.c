/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of FIPS 180-4 and of NIST's validation suite, and lengths around a block's end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/sha256.h"
#include "base/sha256_test.h"

static bool has_instructions(void)
{
    struct sha256 hash;
    sha256_begin(&hash);
    return sha256_use_instructions(&hash);
}

static void expect_both_ways(const char *text, size_t length, const char *wanted)
{
    for (int way = 0; way < (has_instructions() ? 2 : 1); way++) {
        struct sha256 hash;
        uint8_t value[SHA256_SIZE];
        sha256_begin(&hash);
        if (way == 0)
            sha256_use_plain(&hash);
        else
            (void)sha256_use_instructions(&hash);
        sha256_add(&hash, text, length);
        sha256_end(&hash, value);
        for (size_t i = 0; i < SHA256_SIZE; i++) {
            char digits[] = {wanted[2 * i], wanted[2 * i + 1], '\0'};
            assert_int_equal(value[i], strtoul(digits, NULL, 16));
        }
    }
}

static void expect(const char *text, const char *hash)
{
    char out[SHA256_TEXT_ROOM];
    sha256_text(text, strlen(text), out);
    assert_string_equal(out, hash);
    expect_both_ways(text, strlen(text), hash);
}

static void test_vectors(void **state)
{
    (void)state;
    expect("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million AUTO_FREE = mem_alloc(1000001);
    memset(million, 'a', 1000000);
    expect(million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

struct sample {
    size_t length;
    const char *hash;
};

/* So many x, as sha256sum(1) has it. */
static void test_lengths_around_a_block(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {1, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"},
        {54, "45f316e10b2c99abf374b22bda893cf3300d77263f1e272349ed414680522952"},
        {55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"},
        {56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"},
        {57, "ae14a2563ccf969d99aca69ce6bb74981f734bbf9f655f73b8f06db68cab5217"},
        {63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2"},
        {64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"},
        {65, "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"},
        {118, "d4fc3f146a19ae0453b2195bba6b11cffd0afc8c6f94f902e55a94ed975c6abd"},
        {119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c"},
        {120, "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98"},
        {121, "79072a47bfaa54e6057a9ee21e0dea64b9edbfd160c4ccadbb657e64b6d22ee4"},
        {127, "70156a14adbabf98cff3a71c7084b417abf057a8efd27329ca36b7202c87d81f"},
        {128, "24da1b81d0b16df6428eee73c69fcb2a93c76bc6df706f0c6670fe6bfe800464"},
        {129, "0ec9eb33e74510bcdd1f2ea55206e82f21649c5c2becbf2b433eb475b34c01bd"},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        char bytes[130] = "";
        memset(bytes, 'x', samples[i].length);
        expect(bytes, samples[i].hash);
    }
}

/* The same hash in whatever pieces the bytes come. */
static void test_pieces(void **state)
{
    (void)state;
    uint8_t bytes[300], whole[SHA256_SIZE], pieces[SHA256_SIZE];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7);
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, bytes, sizeof(bytes));
    sha256_end(&hash, whole);
    for (size_t step = 1; step < 200; step++) {
        sha256_begin(&hash);
        for (size_t at = 0; at < sizeof(bytes); at += step)
            sha256_add(&hash, bytes + at, at + step < sizeof(bytes) ? step : sizeof(bytes) - at);
        sha256_add(&hash, NULL, 0);
        sha256_end(&hash, pieces);
        assert_memory_equal(pieces, whole, sizeof(whole));
    }
}

/* In pieces below and above the length from which on the processor is asked. */
static void test_large_pieces(void **state)
{
    (void)state;
    const size_t length = ((size_t)1 << 20) + 17;
    uint8_t *bytes AUTO_FREE = mem_alloc(length), plain[SHA256_SIZE], pieces[SHA256_SIZE];
    uint32_t seed = 1;
    for (size_t i = 0; i < length; i++) {
        seed = seed * 1103515245 + 12345;
        bytes[i] = (uint8_t)(seed >> 16);
    }
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_use_plain(&hash);
    sha256_add(&hash, bytes, length);
    sha256_end(&hash, plain);
    for (size_t step = 30011; step < length; step *= 3) {
        sha256_begin(&hash);
        for (size_t at = 0; at < length; at += step)
            sha256_add(&hash, bytes + at, at + step < length ? step : length - at);
        sha256_end(&hash, pieces);
        assert_memory_equal(pieces, plain, sizeof(plain));
    }
}

/* The other tests try both ways; this one says if they could not. */
static void test_instructions(void **state)
{
    (void)state;
    if (!has_instructions()) {
        print_message("this processor has no SHA instructions: only the plain way is tested\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),      cmocka_unit_test(test_lengths_around_a_block),
        cmocka_unit_test(test_pieces),       cmocka_unit_test(test_large_pieces),
        cmocka_unit_test(test_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
