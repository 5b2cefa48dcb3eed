/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations as Python writes them, each thing that can be wrong with one, and mutations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "rendezvous/hex_fixture.h"
#include "rendezvous/notification.h"
#include "rendezvous/pickle.h"

#define KEY "62651552841393ba7acf6d1214867e7fb1711ce4ba1ce50b61dd03940777251c"
#define LO "8c026c6f94" /* 'lo' */
#define HOME_TEXT "8c093132372e302e302e3194"
#define HOME "5d94" HOME_TEXT "4df62b86 94 61" /* [('127.0.0.1', 11254)] */

/* Recorded from a worker, as it was put. */
#define RECORDED                                                                                   \
    "gAWVQgAAAAAAAAB9lIwCbG+UXZSMCTEyNy4wLjAuMZRN9iuGlGFzQyBiZRVShBOTunrPbRIUhn5/sXEc5Loc5Qth3QOU" \
    "B3clHJSGlC4="

/* Two interfaces, recorded; the others are what pickle.dumps makes of
 * ({"lo": [...], "eth0": [two], "aaaaaaaaaaaaaaaaaaaa": []}, key) with protocols 5, 4 and 3, and of
 * two interfaces with the same string object as address. */
static const char *const samples[] = {
    "8005955e00000000000000 7d94 28 8c026c6f94 5d94 8c093132372e302e302e3194 4d7f24 8694 61"
    "8c046574683094 5d94 8c093139322e302e322e3294 4d7f24 8694 61 75 4320" KEY "94 8694 2e",
    "80059589000000000000007d94288c026c6f945d948c093132372e302e302e31944d7f248694618c04657468309"
    "45d94288c093139322e302e322e32944d7f2486948c093139322e302e322e33944d7f248694658c146161616161"
    "616161616161616161616161616161945d94754320" KEY "9486942e",
    "80049589000000000000007d94288c026c6f945d948c093132372e302e302e31944d7f248694618c04657468309"
    "45d94288c093139322e302e322e32944d7f2486948c093139322e302e322e33944d7f248694658c146161616161"
    "616161616161616161616161616161945d94754320" KEY "9486942e",
    "80037d71002858020000006c6f71015d710258090000003132372e302e302e3171034d7f2486710461580400000"
    "06574683071055d71062858090000003139322e302e322e3271074d7f2486710858090000003139322e302e322e"
    "3371094d7f2486710a6558140000006161616161616161616161616161616161616161710b5d710c754320" KEY
    "710d86710e2e",
    "80059551000000000000007d94288c026c6f945d948c093132372e302e302e31944b468694618c036c6f32945d9"
    "468034b4786946175 4320" KEY "9486942e",
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static int read_hex(const char *hex, struct registration *out, struct error *err)
{
    size_t length = 0;
    uint8_t *bytes AUTO_FREE = from_hex(hex, &length);
    char *text AUTO_FREE = to_base64(bytes, length);
    return registration_read(text, strlen(text), out, err);
}

static void expect_address(const struct registration_address *address, const char *interface,
                           const char *text, int port)
{
    assert_string_equal(address->interface, interface);
    assert_string_equal(address->text, text);
    assert_int_equal(address->port, port);
}

static void expect_key(const struct registration *registration)
{
    size_t length = 0;
    uint8_t *key AUTO_FREE = from_hex(KEY, &length);
    assert_int_equal(registration->key_length, length);
    assert_memory_equal(registration->key, key, length);
}

static void test_recorded(void **state)
{
    (void)state;
    struct registration registration;
    assert_int_equal(registration_read(RECORDED, strlen(RECORDED), &registration, NULL), 0);
    assert_int_equal(registration.count, 1);
    expect_address(&registration.addresses[0], "lo", "127.0.0.1", 11254);
    expect_key(&registration);
    registration_destroy(&registration);
}

static void test_several_interfaces(void **state)
{
    (void)state;
    struct registration registration;
    for (int i = 0; i < SAMPLES - 1; i++) {
        struct error err = ERROR_INIT;
        if (read_hex(samples[i], &registration, &err) < 0)
            fail_msg("sample %d: %s", i, err.text);
        assert_int_equal(registration.count, i == 0 ? 2 : 3);
        expect_address(&registration.addresses[0], "lo", "127.0.0.1", 9343);
        expect_address(&registration.addresses[1], "eth0", "192.0.2.2", 9343);
        if (i > 0)
            expect_address(&registration.addresses[2], "eth0", "192.0.2.3", 9343);
        expect_key(&registration);
        registration_destroy(&registration);
    }
    assert_int_equal(read_hex(samples[SAMPLES - 1], &registration, NULL), 0);
    assert_int_equal(registration.count, 2);
    expect_address(&registration.addresses[0], "lo", "127.0.0.1", 70);
    expect_address(&registration.addresses[1], "lo2", "127.0.0.1", 71);
    registration_destroy(&registration);
}

/* Opcodes that a worker's Python does not use for this today, but may. */
static void test_other_opcodes(void **state)
{
    (void)state;
    static const char *const spellings[] = {
        "8003 7d 58 02000000 6c6f 5d 58 09000000 3132372e302e302e31 4a f62b0000 86 61 73"
        "42 20000000" KEY "86 2e",
        "8005 28 7d 72 05000000 " LO "28" HOME_TEXT "4df62b 74 71 20 30",
        "8005 7d 28 " LO "5d 28 28 " HOME_TEXT "4df62b 74 65 75 28 4320" KEY "85 30",
        "8005 28 7d 28 " LO "5d 28 28 " HOME_TEXT "4df62b 74 72 00010000 6a 00010000 65 75"
        "4320" KEY "74 2e",
    };
    struct registration registration;
    assert_int_equal(read_hex(spellings[0], &registration, NULL), 0);
    expect_address(&registration.addresses[0], "lo", "127.0.0.1", 11254);
    expect_key(&registration);
    registration_destroy(&registration);
    assert_int_equal(read_hex(spellings[1], &registration, NULL), -1); /* '0' is POP */
    assert_int_equal(read_hex(spellings[2], &registration, NULL), -1);
    assert_int_equal(read_hex(spellings[3], &registration, NULL), 0);
    assert_int_equal(registration.count, 2); /* one tuple in two places of a list */
    expect_address(&registration.addresses[1], "lo", "127.0.0.1", 11254);
    registration_destroy(&registration);
}

struct wrong {
    const char *hex, *problem;
};

#define TAIL "4320" KEY "862e"

static const struct wrong wrongs[] = {
    {"", "it is not base64"},
    {"2e", "does not begin as a pickle"},
    {"80 05", "it is cut off"},
    {"80 02 7d 2e", "protocol is 2"},
    {"80 06 7d 2e", "protocol is 6"},
    {"80 05 95 0100000000000000", "cut off inside a frame"},
    {"80 05 95 ffffffffffffffff 2e", "cut off inside a frame"},
    {"80 05 2e", "does not end with one value"},
    {"80 05 7d 7d 2e", "does not end with one value"},
    {"80 05 7d 28 2e", "does not end with one value"},
    {"80 05 7d 2e 2e", "bytes follow its end"},
    {"80 05 7d", "it is cut off"},
    {"80 05 8c", "it is cut off"},
    {"80 05 8c 05 61", "it is cut off"},
    {"80 05 58 ffffffff 61 2e", "it is cut off"},
    {"80 05 8c 05 706f736978 8c 06 73797374656d 93 2e", "opcode 0x93"},
    {"80 05 63 6f730a 73797374656d0a 2e", "opcode 0x63"},
    {"80 05 86 2e", "a value is missing"},
    {"80 05 94 2e", "a value is missing"},
    {"80 05 61 2e", "a value is missing"},
    {"80 05 5d 73 2e", "a value is missing"},
    {"80 05 65 2e", "a mark is missing"},
    {"80 05 5d 28 61 2e", "a value is missing"},
    {"80 05 68 00 2e", "not memorized"},
    {"80 05 6a ffffffff 2e", "not memorized"},
    {"80 05 7d 72 ffffffff 2e", "memorizes too many values"},
    {"80 05 7d 4b01 61 2e", "not a list"},
    {"80 05 5d 4b01 4b01 73 2e", "not a dictionary"},
    {"80 05 7d 28 4b01 75 2e", "has no value"},
    {"80 05 7d 2e", "not a pair of addresses and key"},
    {"80 05 7d 85 2e", "not a pair of addresses and key"},
    {"80 05 7d 43 00 86 2e", "its key"},
    {"80 05 7d 8c 01 61 86 2e", "its key"},
    {"80 05 5d " TAIL, "not a dictionary"},
    {"80 05 7d " TAIL, "no address"},
    {"80 05 7d " LO "5d 73" TAIL, "no address"},
    {"80 05 7d 4b01 " HOME "73" TAIL, "no proper name"},
    {"80 05 7d 8c00 " HOME "73" TAIL, "no proper name"},
    {"80 05 7d 8c02 6c0a " HOME "73" TAIL, "no proper name"},
    {"80 05 7d " LO "7d 73" TAIL, "not a list"},
    {"80 05 7d " LO "5d 4b01 61 73" TAIL, "not a pair of address and port"},
    {"80 05 7d " LO "5d 4b01 4b01 86 61 73" TAIL, "not an IPv4 address"},
    {"80 05 7d " LO "5d 8c03 3a3a31 4b01 86 61 73" TAIL, "not an IPv4 address"},
    {"80 05 7d " LO "5d 8c08 3132372e302e3031 4b01 86 61 73" TAIL, "not an IPv4 address"},
    {"80 05 7d " LO "5d 8c0a 3132372e302e302e3100 4b01 86 61 73" TAIL, "not an IPv4 address"},
    {"80 05 7d " LO "5d " HOME_TEXT "4b00 86 61 73" TAIL, "port"},
    {"80 05 7d " LO "5d " HOME_TEXT "4a ffffffff 86 61 73" TAIL, "port"},
    {"80 05 7d " LO "5d " HOME_TEXT "4a 00000100 86 61 73" TAIL, "port"},
    {"80 05 7d " LO "5d " HOME_TEXT HOME_TEXT "86 61 73" TAIL, "port"},
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        struct registration registration;
        struct error err = ERROR_INIT;
        assert_int_equal(read_hex(wrongs[i].hex, &registration, &err), -1);
        if (strstr(err.text, wrongs[i].problem) == NULL ||
            strstr(err.text, "the worker's registration cannot be read: ") != err.text)
            fail_msg("%s: %s", wrongs[i].hex, err.text);
        assert_null(registration.addresses);
    }
}

static void test_wrong_base64(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "gAV9",       "gAV9Lg",   "gAV9L===", "gAV9=Lg=", "gAV9Lg=\n",
        "gAV9Lg==\n", "gA-9Lg==", "====",     "="};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct registration registration;
        assert_int_equal(registration_read(texts[i], strlen(texts[i]), &registration, NULL), -1);
    }
    size_t length = REGISTRATION_BODY_MAX + 4;
    char *long_text AUTO_FREE = mem_alloc(length);
    memset(long_text, 'A', length);
    struct registration registration;
    struct error err = ERROR_INIT;
    assert_int_equal(registration_read(long_text, length, &registration, &err), -1);
    assert_non_null(strstr(err.text, "more than"));
}

static int read_repeated(const char *before, const char *again, int times, const char *after,
                         struct error *err)
{
    AUTO_BUF struct buf hex = BUF_INIT(1 << 20);
    struct registration registration;
    buf_puts(&hex, before);
    for (int i = 0; i < times; i++)
        buf_puts(&hex, again);
    buf_puts(&hex, after);
    int result = read_hex(buf_text(&hex), &registration, err);
    registration_destroy(&registration);
    return result;
}

/* Small inputs that would become large: each meets its limit. */
static void test_limits(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    static const char begin[] = "80 05 7d " LO "5d 94 28", pair[] = HOME_TEXT "4b01 86";
    assert_int_equal(read_repeated(begin, pair, 256, "65 73" TAIL, &err), 0);
    assert_int_equal(read_repeated(begin, pair, 257, "65 73" TAIL, &err), -1);
    assert_non_null(strstr(err.text, "more than 256 addresses"));
    assert_int_equal(read_repeated("80 05", "7d", 5000, "2e", &err), -1);
    assert_non_null(strstr(err.text, "more than 4096 values"));
    assert_int_equal(read_repeated("80 05 5d 94", "68 00", 5000, "2e", &err), -1);
    assert_non_null(strstr(err.text, "more than 4096 values"));
    assert_int_equal(read_repeated("80 05", "28", 33, "2e", &err), -1);
    assert_non_null(strstr(err.text, "nested too deeply"));
    /* a list in itself, as an address */
    assert_int_equal(read_repeated("80 05 7d " LO "5d 94 68 01", "68 01 61", 1, "73" TAIL, &err),
                     -1);
    /* a list of 200 addresses for each of 200 interfaces */
    assert_int_equal(read_repeated("80 05 7d 28 " LO "5d 94 28" HOME_TEXT "4b01 86 94", "68 03",
                                   199, "65", &err),
                     -1);
    AUTO_BUF struct buf before = BUF_INIT(1 << 20);
    buf_puts(&before, "80 05 7d 28 " LO "5d 94 28" HOME_TEXT "4b01 86 94");
    for (int i = 0; i < 199; i++)
        buf_puts(&before, "68 03");
    buf_puts(&before, "65");
    assert_int_equal(read_repeated(buf_text(&before), "68 00 68 01", 200, "75" TAIL, &err), -1);
    assert_non_null(strstr(err.text, "more than 256 addresses"));
}

/* Every opcode of the table and some that must be refused. */
static const char opcodes[] =
    "\x80\x95(KMJ\x8cXCB}])\x85\x86\x87taesu\x94qrhj.\x93Rc\x81\x8a\x00\x01\x02\x20\xff";

static void test_mutations(void **state)
{
    (void)state;
    int accepted = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        size_t length = 0;
        uint8_t *sample AUTO_FREE = from_hex(samples[i], &length);
        uint64_t seed = 20260000 + i;
        for (int round = 0; round < 20000; round++) {
            size_t mutant_length = 0;
            uint8_t *mutant AUTO_FREE =
                mutate(sample, length, opcodes, sizeof(opcodes) - 1, &seed, &mutant_length);
            struct pickle pickle;
            if (pickle_read(mutant, mutant_length, &pickle, NULL) == 0)
                pickle_destroy(&pickle);
            char *text AUTO_FREE = to_base64(mutant, mutant_length);
            struct registration registration;
            struct error err = ERROR_INIT;
            if (registration_read(text, strlen(text), &registration, &err) < 0) {
                assert_int_not_equal(strlen(err.text), 0);
                continue;
            }
            assert_in_range(registration.count, 1, REGISTRATION_ADDRESSES_MAX);
            assert_in_range(registration.key_length, 1, REGISTRATION_KEY_MAX);
            accepted++;
            registration_destroy(&registration);
        }
    }
    assert_in_range(accepted, 100, 90000); /* the mutations are neither blind nor harmless */
}

static void test_mutations_of_the_text(void **state)
{
    (void)state;
    uint64_t seed = 4711;
    for (int round = 0; round < 50000; round++) {
        size_t length = 0;
        uint8_t *text AUTO_FREE =
            mutate((const uint8_t *)RECORDED, strlen(RECORDED), "=\n\0/+A", 6, &seed, &length);
        struct registration registration;
        if (registration_read(text, length, &registration, NULL) == 0)
            registration_destroy(&registration);
    }
}

/* Pickles of opcodes at random, with small operands: far more of them are well formed. */
static void test_random_opcodes(void **state)
{
    (void)state;
    static const char simple[] = "(}])\x85\x86\x87taesu\x94";
    uint64_t seed = 99;
    int accepted = 0;
    for (int round = 0; round < 100000; round++) {
        AUTO_BUF struct buf bytes = BUF_INIT(1000);
        buf_append(&bytes, "\x80\x05", 2);
        for (uint32_t left = fuzz_next(&seed, 24); left > 0; left--) {
            uint32_t kind = fuzz_next(&seed, 20);
            if (kind < 13) {
                buf_putc(&bytes, simple[kind]);
            } else {
                buf_putc(&bytes, "KqhCK\x8ch"[kind - 13]);
                buf_putc(&bytes, kind == 16 || kind == 18 ? 0 : (char)fuzz_next(&seed, 6));
            }
        }
        buf_putc(&bytes, '.');
        uint8_t *exact AUTO_FREE = mem_dup(buf_text(&bytes), bytes.length);
        struct pickle pickle;
        if (pickle_read(exact, bytes.length, &pickle, NULL) < 0)
            continue;
        assert_true(pickle.root < pickle.count);
        for (size_t i = 0; i < pickle.count; i++) {
            for (size_t j = 0; pickle.values[i].items != NULL && j < pickle.values[i].length; j++)
                assert_true(pickle.values[i].items[j] < pickle.count);
        }
        accepted++;
        pickle_destroy(&pickle);
    }
    assert_true(accepted > 1000);
}

/* Each sign that base64 does not have, in the place of one that stands for 0. */
static void test_signs_that_are_not_base64(void **state)
{
    (void)state;
    char text[sizeof(RECORDED)];
    for (int byte = 1; byte < 256; byte++) {
        memcpy(text, RECORDED, sizeof(text));
        char *zeros = strstr(text, "AAAAAA");
        zeros[2] = (char)byte;
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        if (letter || (byte >= '0' && byte <= '9') || byte == '+' || byte == '/')
            continue;
        struct registration registration;
        struct error err = ERROR_INIT;
        assert_int_equal(registration_read(text, strlen(text), &registration, &err), -1);
        assert_non_null(strstr(err.text, "it is not base64"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),       cmocka_unit_test(test_several_interfaces),
        cmocka_unit_test(test_other_opcodes),  cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_wrong_base64),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_mutations),      cmocka_unit_test(test_mutations_of_the_text),
        cmocka_unit_test(test_random_opcodes), cmocka_unit_test(test_signs_that_are_not_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
