/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h>

#include "ssh/ssh_fixture.h"
#include "transport/ssh_module/fields.h"
#include "transport/ssh_module/key.h"

#define KEYGEN "/usr/bin/ssh-keygen"

static int setup(void **state)
{
    *state = place_make();
    return 0;
}

static int teardown(void **state)
{
    place_remove(*state);
    return 0;
}

static void need_keygen(void)
{
    if (!program_exists(KEYGEN)) {
        print_message("skipped: there is no " KEYGEN "\n");
        skip();
    }
}

/* The signature must be one that OpenSSL verifies with the public half; the public blob must be the
 * one that ssh-keygen wrote. */
static void check_usable(const char *path, const char *name)
{
    char *AUTO_FREE public = mem_printf("%s.pub", path);
    char *AUTO_FREE hidden = mem_printf("%s.hidden", path);
    AUTO_BUF struct buf signature = BUF_INIT(8192), again = BUF_INIT(8192);
    struct byte_view data = {.at = (const unsigned char *)"some data", .length = 9};
    struct key_file file, from_pub;
    struct error err = ERROR_INIT;

    key_file_read(&from_pub, public);
    assert_int_equal(from_pub.kind, KEY_FILE_LOCKED);
    assert_int_equal(rename(public, hidden), 0);
    key_file_read(&file, path);
    assert_int_equal(rename(hidden, public), 0);
    if (file.kind != KEY_FILE_USABLE)
        print_error("%s: %s\n", path, file.reason.text);
    assert_int_equal(file.kind, KEY_FILE_USABLE);
    assert_string_equal(file.key->type->shown, name);
    assert_true(from_pub.public.length > 0);
    assert_true(view_equal(buf_view(&from_pub.public), buf_view(&file.key->blob)));
    assert_int_equal(key_sign(file.key, data, &signature, &err), 0);
    assert_true(signature.length >= 64);
    assert_int_equal(key_sign(file.key, data, &again, &err), 0);
    if (strcmp(name, "ecdsa") != 0) /* which has random bytes in it */
        assert_true(view_equal(buf_view(&signature), buf_view(&again)));
    key_file_destroy(&file);
    key_file_destroy(&from_pub);
}

static void opens_every_kind_that_ssh_keygen_makes(void **state)
{
    need_keygen();
    static const struct {
        const char *type, *bits, *format, *name;
    } kinds[] = {
        {"ed25519", NULL, NULL, "ed25519"}, {"ecdsa", "256", NULL, "ecdsa"},
        {"ecdsa", "384", NULL, "ecdsa"},    {"ecdsa", "521", NULL, "ecdsa"},
        {"rsa", "2048", NULL, "rsa"},       {"rsa", "2048", "PEM", "rsa"},
        {"rsa", "2048", "PKCS8", "rsa"},    {"ecdsa", "256", "PEM", "ecdsa"},
        {"ecdsa", "384", "PKCS8", "ecdsa"},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *AUTO_FREE name = mem_printf("key%zu", i);
        char *AUTO_FREE path =
            key_make(*state, name, kinds[i].type, kinds[i].bits, "", kinds[i].format);
        check_usable(path, kinds[i].name);
    }
}

static void says_why_a_key_cannot_be_used(void **state)
{
    need_keygen();
    char *AUTO_FREE bcrypt = key_make(*state, "bcrypt", "ed25519", NULL, "secret", NULL);
    char *AUTO_FREE pem = key_make(*state, "pem", "rsa", "2048", "secret", "PEM");
    char *AUTO_FREE pkcs8 = key_make(*state, "pkcs8", "ecdsa", "384", "secret", "PKCS8");
    char *AUTO_FREE open = key_make(*state, "open", "ed25519", NULL, "", NULL);
    char *AUTO_FREE odd = place_path(*state, "odd");
    char *AUTO_FREE missing = place_path(*state, "missing");
    struct key_file file;

    const char *const encrypted[] = {bcrypt, pem, pkcs8};
    for (size_t i = 0; i < sizeof encrypted / sizeof encrypted[0]; i++) {
        key_file_read(&file, encrypted[i]);
        assert_int_equal(file.kind, KEY_FILE_LOCKED);
        assert_string_equal(file.reason.text,
                            "it is encrypted: load it into your ssh-agent with ssh-add");
        assert_true(file.public.length > 0); /* from it, or from FILE.pub */
        key_file_destroy(&file);
    }

    assert_int_equal(chmod(open, 0644), 0);
    key_file_read(&file, open);
    assert_int_equal(file.kind, KEY_FILE_BAD);
    assert_non_null(strstr(file.reason.text, "chmod 600"));
    key_file_destroy(&file);

    place_write(odd, "hello\n", false);
    key_file_read(&file, odd);
    assert_int_equal(file.kind, KEY_FILE_BAD);
    key_file_destroy(&file);
    memset(&file, 0xff, sizeof file); /* nothing of what it was before counts */
    key_file_read(&file, missing);
    assert_int_equal(file.kind, KEY_FILE_MISSING);
    key_file_destroy(&file);
}

/* A FIDO key by its shape: nothing here could make a real one. */
static void a_fido_key_is_left_to_ssh(void **state)
{
    (void)state;
    static const char text[] =
        "-----BEGIN OPENSSH PRIVATE KEY-----\n"
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAASgAAABpzay1zc2gtZWQy\n"
        "NTUxOUBvcGVuc3NoLmNvbQAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAARz\n"
        "c2g6AAAAAA==\n"
        "-----END OPENSSH PRIVATE KEY-----\n";
    struct key_file file;

    key_file_parse(&file, "sk", text, strlen(text));
    assert_int_equal(file.kind, KEY_FILE_NEEDS_SSH);
    assert_non_null(strstr(file.reason.text, "sk-ssh-ed25519@openssh.com"));
    key_file_destroy(&file);
}

static void only_ssh_can_use_it(void **state)
{
    static const char text[] =
        "-----BEGIN OPENSSH PRIVATE KEY-----\n"
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAASgAAABpzay1zc2gtZWQy\n"
        "NTUxOUBvcGVuc3NoLmNvbQAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAARz\n"
        "c2g6AAAAAA==\n"
        "-----END OPENSSH PRIVATE KEY-----\n";
    char *AUTO_FREE path = place_path(*state, "sk");
    char *files[] = {path, NULL};
    struct ssh_keys_config config = {.files = files};
    AUTO_STRV struct strv notes = STRV_INIT;
    struct error err = ERROR_INIT;

    place_write(path, text, false);
    assert_int_equal(chmod(path, 0600), 0);
    struct ssh_keys *keys = keys_create(&config, &notes, &err);
    assert_non_null(keys);
    assert_int_equal(keys_count(keys), 0);
    assert_non_null(strstr(keys_left_to_ssh(keys), "sk-ssh-ed25519@openssh.com"));
    keys_destroy(keys);
}

/* The bytes inside of a private key of OpenSSH. */
static unsigned char *inside_of(const char *path, size_t *length)
{
    char *AUTO_FREE text = place_read(path);
    char *begin = strchr(text, '\n'), *end = strstr(text, "-----END");
    unsigned char *bytes = mem_alloc(strlen(text));
    ssize_t decoded = base64_decode(begin, (size_t)(end - begin), bytes);
    assert_true(decoded > 0);
    *length = (size_t)decoded;
    return bytes;
}

/* A file with these bytes is refused for this reason. */
static void refused(const unsigned char *bytes, size_t length, const char *reason)
{
    AUTO_BUF struct buf text = BUF_INIT(100000);
    struct key_file file;

    buf_puts(&text, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    base64_append(&text, bytes, length);
    buf_puts(&text, "\n-----END OPENSSH PRIVATE KEY-----\n");
    key_file_parse(&file, "key", buf_text(&text), text.length);
    assert_int_equal(file.kind, KEY_FILE_BAD);
    assert_string_equal(file.reason.text, reason);
    key_file_destroy(&file);
}

/* The last place of this text in the bytes. */
static size_t last_place(const unsigned char *bytes, size_t length, const char *text)
{
    size_t found = length, wanted = strlen(text);
    for (size_t at = 0; at + wanted <= length; at++)
        found = memcmp(bytes + at, text, wanted) == 0 ? at : found;
    assert_true(found < length);
    return found;
}

static void each_damage_has_a_reason(void **state)
{
    need_keygen();
    char *AUTO_FREE path = key_make(*state, "ec", "ecdsa", "256", "", NULL);
    size_t length;
    unsigned char *AUTO_FREE bytes = inside_of(path, &length);
    size_t number = 15 + 8 + 8 + 4 + 3; /* magic, "none", "none", no options: the number of keys */

    refused(bytes, length / 2, "the file is cut off or damaged");
    refused(bytes, 10, "the file is damaged");
    bytes[number] = 2;
    refused(bytes, length, "it does not hold exactly one key");
    bytes[number] = 1;
    bytes[0] = 'x';
    refused(bytes, length, "the file is damaged");
    bytes[0] = 'o';
    bytes[last_place(bytes, length, "nistp256") + 5] = '3'; /* of the private half */
    refused(bytes, length, "the private key in the file is damaged");
}

/* OpenSSH's file leaves out two of the numbers of an RSA key. */
static void an_rsa_key_is_whole(void **state)
{
    need_keygen();
    char *AUTO_FREE path = key_make(*state, "rsa", "rsa", "2048", "", NULL);
    struct key_file file;

    key_file_read(&file, path);
    assert_int_equal(file.kind, KEY_FILE_USABLE);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(file.key->private, NULL);
    assert_int_equal(EVP_PKEY_check(context), 1);
    EVP_PKEY_CTX_free(context);
    key_file_destroy(&file);
}

/* Only the first line of a public key counts, and it must not be too long. */
static void public_files(void **state)
{
    need_keygen();
    char *AUTO_FREE path = key_make(*state, "ed", "ed25519", NULL, "", NULL);
    char *AUTO_FREE public = mem_printf("%s.pub", path);
    char *AUTO_FREE line = place_read(public);
    struct key_file file, again;

    key_file_read(&file, public);
    *strchr(strchr(line, ' ') + 1, ' ') = '\0'; /* without its comment */
    char *AUTO_FREE lines = mem_printf("%s\nanother line\n", line);
    place_write(public, lines, false);
    key_file_read(&again, public);
    assert_int_equal(again.kind, KEY_FILE_LOCKED);
    assert_true(view_equal(buf_view(&again.public), buf_view(&file.public)));
    key_file_destroy(&file);
    key_file_destroy(&again);

    char *AUTO_FREE digits = mem_alloc(20001);
    memset(digits, 'A', 20000);
    char *AUTO_FREE much = mem_printf("ssh-ed25519 %s\n", digits);
    place_write(public, much, false);
    assert_int_equal(chmod(public, 0644), 0);
    key_file_read(&file, public);
    assert_int_equal(file.kind, KEY_FILE_BAD);
    assert_non_null(strstr(file.reason.text, "chmod 600"));
    key_file_destroy(&file);
}

/* Cuts and single wrong bytes: an error or a key, never a crash. */
static void damage_is_survived(void **state)
{
    need_keygen();
    char *AUTO_FREE ed = key_make(*state, "ed", "ed25519", NULL, "", NULL);
    char *AUTO_FREE ec = key_make(*state, "ec", "ecdsa", "256", "", NULL);
    const char *const paths[] = {ed, ec};

    for (size_t k = 0; k < 2; k++) {
        char *AUTO_FREE text = place_read(paths[k]);
        size_t length = strlen(text);
        struct key_file file;
        for (size_t cut = 0; cut < length; cut++) {
            char *copy = mem_dup(text, cut + 1);
            key_file_parse(&file, "cut", copy, cut);
            if (cut + 40 < length)
                assert_int_not_equal(file.kind, KEY_FILE_USABLE);
            key_file_destroy(&file);
            copy[cut] = 'A';
            free(copy);
        }
        for (size_t at = 0; at < length; at++) {
            char *copy = mem_dup(text, length + 1);
            copy[at] = copy[at] == 'A' ? 'Q' : 'A';
            key_file_parse(&file, "damaged", copy, length);
            key_file_destroy(&file);
            free(copy);
        }
    }
}

static void keys_come_in_order_and_notes_say_what_is_left_out(void **state)
{
    need_keygen();
    char *AUTO_FREE first = key_make(*state, "first", "ecdsa", "256", "", NULL);
    char *AUTO_FREE locked = key_make(*state, "locked", "ed25519", NULL, "secret", NULL);
    char *AUTO_FREE last = key_make(*state, "last", "ed25519", NULL, "", NULL);
    char *AUTO_FREE missing = place_path(*state, "missing");
    char *files[] = {first, missing, locked, last, NULL};
    char *also_missing AUTO_FREE = place_path(*state, "also-missing");
    char *no_files[] = {missing, also_missing, NULL}, *no_file[] = {missing, NULL};
    char *only_locked[] = {locked, NULL};
    struct ssh_keys_config config = {.files = files};
    AUTO_STRV struct strv notes = STRV_INIT;
    struct error err = ERROR_INIT;
    struct ssh_keys *keys = keys_create(&config, &notes, &err);

    assert_non_null(keys);
    assert_int_equal(keys_count(keys), 2);
    assert_string_equal(keys_get(keys, 0)->origin, first);
    assert_string_equal(keys_get(keys, 1)->origin, last);
    assert_int_equal(notes.count, 1);
    assert_non_null(strstr(notes.items[0], locked));
    keys_destroy(keys);

    config.files = no_files;
    assert_null(keys_create(&config, &notes, &err));
    assert_non_null(strstr(err.text, "ssh-keygen"));
    config.files = no_file;
    assert_null(keys_create(&config, &notes, &err));
    assert_non_null(strstr(err.text, missing));
    config.files = only_locked;
    assert_null(keys_create(&config, &notes, &err));
    assert_non_null(strstr(err.text, "ssh-add"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_ssh_can_use_it, setup, teardown),
        cmocka_unit_test_setup_teardown(each_damage_has_a_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(an_rsa_key_is_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(public_files, setup, teardown),
        cmocka_unit_test_setup_teardown(opens_every_kind_that_ssh_keygen_makes, setup, teardown),
        cmocka_unit_test_setup_teardown(says_why_a_key_cannot_be_used, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fido_key_is_left_to_ssh, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_survived, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_come_in_order_and_notes_say_what_is_left_out, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
