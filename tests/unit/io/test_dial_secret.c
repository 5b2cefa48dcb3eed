/* SPDX-License-Identifier: Apache-2.0 */
/* The expected keys come from another implementation of HMAC (Python's). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/dial_ends.h"

#define SECRET "0123456789abcdef"

static void expect_key(const uint8_t *key, const char *hex)
{
    char text[2 * TLS_KEY_SIZE + 1];
    for (size_t i = 0; i < TLS_KEY_SIZE; i++)
        snprintf(&text[2 * i], 3, "%02x", key[i]);
    assert_string_equal(text, hex);
}

/* Reads the key from a file with these bytes. */
static int read_key(const void *bytes, size_t length, const char *id, uint8_t *key,
                    struct error *err)
{
    char path[] = "/tmp/hvdrun-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, length), 0);
    close(fd);
    int result = dial_secret_key(path, id, key, err);
    unlink(path);
    return result;
}

static void test_derivation(void **state)
{
    uint8_t key[TLS_KEY_SIZE];
    (void)state;
    dial_secret_derive(SECRET, strlen(SECRET), "hvdrun", key);
    expect_key(key, "2abf394b8a56bcbef472dcbb6044c001e383c7126a91f65cb55370cf025169a9");
    dial_secret_derive(SECRET, strlen(SECRET), "other", key);
    expect_key(key, "e897f5cebb1a240fb0d57ca9f12d92230297ca31f180b32f1773af7e589d0f1e");
}

/* An editor and echo(1) end a file with a newline. */
static void test_white_space_at_the_end(void **state)
{
    static const char *const files[] = {SECRET, SECRET "\n", SECRET " \t\r\n\n"};
    struct error err = ERROR_INIT;
    uint8_t key[TLS_KEY_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        assert_int_equal(read_key(files[i], strlen(files[i]), "hvdrun", key, &err), 0);
        expect_key(key, "2abf394b8a56bcbef472dcbb6044c001e383c7126a91f65cb55370cf025169a9");
    }
}

static void test_any_bytes(void **state)
{
    const char one[] = "a\0b\xff a\0b\xff a\0b\xff a\0b",
               other[] = "a\0b\xff a\0b\xff a\0b\xff a\0c";
    struct error err = ERROR_INIT;
    uint8_t key[TLS_KEY_SIZE], key_of_other[TLS_KEY_SIZE];
    (void)state;
    assert_int_equal(read_key(one, sizeof(one), "hvdrun", key, &err), 0);
    assert_int_equal(read_key(other, sizeof(other), "hvdrun", key_of_other, &err), 0);
    assert_memory_not_equal(key, key_of_other, sizeof(key));
}

static void refuse(const void *bytes, size_t length, const char *id, const char *why)
{
    struct error err = ERROR_INIT;
    uint8_t key[TLS_KEY_SIZE];
    assert_int_equal(read_key(bytes, length, id, key, &err), -1);
    assert_non_null(strstr(err.text, why));
}

static void test_length(void **state)
{
    char most[DIAL_SECRET_MAX + 2];
    struct error err = ERROR_INIT;
    uint8_t key[TLS_KEY_SIZE];
    (void)state;
    memset(most, 'x', sizeof(most));
    refuse("", 0, "hvdrun", "less than 16 bytes");
    refuse("\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", 18, "hvdrun", "less than 16 bytes");
    refuse(SECRET, strlen(SECRET) - 1, "hvdrun", "less than 16 bytes");
    assert_int_equal(read_key(most, DIAL_SECRET_MAX, "hvdrun", key, &err), 0);
    refuse(most, DIAL_SECRET_MAX + 1, "hvdrun", "more than 4096 bytes");
    refuse(most, sizeof(most), "hvdrun", "more than 4096 bytes");
}

static void test_ids(void **state)
{
    char id[DIAL_ID_MAX + 2];
    struct error err = ERROR_INIT;
    uint8_t key[TLS_KEY_SIZE];
    (void)state;
    memset(id, 'x', sizeof(id));
    id[DIAL_ID_MAX + 1] = '\0';
    refuse(SECRET, strlen(SECRET), id, "--dial-id");
    id[DIAL_ID_MAX] = '\0';
    assert_int_equal(read_key(SECRET, strlen(SECRET), id, key, &err), 0);
    refuse(SECRET, strlen(SECRET), "", "--dial-id");
    refuse(SECRET, strlen(SECRET), "a b", "--dial-id");
    refuse(SECRET, strlen(SECRET), "a\xc3\xa4", "--dial-id");
}

static void test_a_file_that_all_can_change(void **state)
{
    char path[] = "/tmp/hvdrun-test-XXXXXX";
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    assert_false(dial_secret_is_open(path));
    assert_int_equal(fchmod(fd, 0664), 0);
    assert_false(dial_secret_is_open(path));
    assert_int_equal(fchmod(fd, 0602), 0);
    assert_true(dial_secret_is_open(path));
    close(fd);
    unlink(path);
}

static void test_no_file(void **state)
{
    struct error err = ERROR_INIT;
    uint8_t key[TLS_KEY_SIZE];
    (void)state;
    assert_int_equal(dial_secret_key("/nowhere/secret", "hvdrun", key, &err), -1);
    assert_non_null(strstr(err.text, "/nowhere/secret"));
    assert_int_equal(dial_secret_key("/dev/zero", "hvdrun", key, &err), -1);
    assert_int_equal(dial_secret_key("/", "hvdrun", key, &err), -1);
}

/* A key that everyone with the id can make. It is not that of any file. */
static void test_no_secret(void **state)
{
    struct error err = ERROR_INIT;
    uint8_t key[TLS_KEY_SIZE], wanted[TLS_KEY_SIZE];
    (void)state;
    assert_int_equal(dial_secret_key(NULL, "77", wanted, &err), 0);
    assert_int_equal(dial_secret_key(NULL, "77", key, &err), 0);
    assert_memory_equal(key, wanted, sizeof(key));
    dial_secret_derive((const uint8_t *)"", 0, "77", key); /* the user counts, too */
    assert_memory_not_equal(key, wanted, sizeof(key));
    assert_int_equal(dial_secret_key(NULL, "none", key, &err), 0);
    assert_memory_not_equal(key, wanted, sizeof(key));
    assert_int_equal(dial_secret_key(NULL, "a b", key, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_secret),
        cmocka_unit_test(test_derivation),
        cmocka_unit_test(test_white_space_at_the_end),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_a_file_that_all_can_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
