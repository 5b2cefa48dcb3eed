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
#include "transport/ssh_module/fields.h"
#include "transport/ssh_module/known_hosts.h"

#define ED_BASE64 "AAAAC3NzaC1lZDI1NTE5AAAAIJncNnUNKJcj8d9fcv8TYUUTlyiT+w7hBO8Q+NM2FJNP"
#define ED "ssh-ed25519 " ED_BASE64
#define OTHER_BASE64 "AAAAC3NzaC1lZDI1NTE5AAAAILXEZxmHsxIK2pwSkIC4q+7cDlO1WhvQVgWuZR6bae1V"
#define OTHER "ssh-ed25519 " OTHER_BASE64
#define EC                                                                                       \
    "ecdsa-sha2-nistp256 "                                                                       \
    "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBOPBwiz6q8hrxMLYgZKXShyZsl70pqPbeQkgMK" \
    "KchIKIYe2/VKz9Orb0tKECUfEEHoBn8RX99KHRczeCwLbBSmY="
/* Made by ssh-keygen -H of node1.example and [node1.example]:2222. */
#define HASHED "|1|WG6Z3Hp5t3QnMWGkIcSw7sw2sJY=|kSP3nvGyY2WdCspXcLc9xD/P5Oo="
#define HASHED_2222 "|1|+ZEbIrmz7gw0MlnM28F1zEJ81Wo=|JNotg4QCfGOzh/bgESIRseRnm8g="

static struct byte_view key_of(const char *digits, unsigned char *room)
{
    struct byte_view key = {.at = room};
    ssize_t length = base64_decode(digits, strlen(digits), room);
    assert_true(length > 0);
    key.length = (size_t)length;
    return key;
}

struct golden {
    const char *name;
    int port;
    const char *text;
    enum known_verdict verdict; /* of the key ED */
    int line;
};

static const struct golden cases[] = {
    {"node1.example", 22, "", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "node1.example " ED "\n", KNOWN_MATCH, 1},
    {"node1.example", 22, "node1.example " ED, KNOWN_MATCH, 1},
    {"node1.example", 22, "node1.example " ED " root@node1\r\n", KNOWN_MATCH, 1},
    {"NODE1.Example", 22, "node1.EXAMPLE " ED "\n", KNOWN_MATCH, 1},
    {"node1.example", 22, "\n# node1.example " ED "\n\t node1.example\t" ED "\n", KNOWN_MATCH, 3},
    {"node1.example", 22, "#node1.example " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "#gone,node1.example " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "a,node1.example,10.0.0.1 " ED "\n", KNOWN_MATCH, 1},
    {"node1.example", 22, "node1.example.org " ED "\nnode1 " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "node1.example " OTHER "\n", KNOWN_CHANGED, 1},
    {"node1.example", 22, "node1.example " OTHER "\nnode1.example " ED "\n", KNOWN_MATCH, 2},
    {"node1.example", 22, "node1.example " EC "\n", KNOWN_OTHER_TYPE, 1},
    {"node1.example", 22, "node1.example " EC "\nnode1.example " OTHER "\n", KNOWN_CHANGED, 2},
    /* wildcards and negation */
    {"node1.example", 22, "node?.example " ED "\n", KNOWN_MATCH, 1},
    {"node1.example", 22, "*.example " ED "\n", KNOWN_MATCH, 1},
    {"node1.example", 22, "* " OTHER "\n", KNOWN_CHANGED, 1},
    {"node1.example", 22, "n*1*e " ED "\n", KNOWN_MATCH, 1},
    {"node1.example", 22, "n*2*e " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "node1.example? " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "node1.example** " ED "\n", KNOWN_MATCH, 1},
    {"node1.e.example", 22, "*.example " ED "\n", KNOWN_MATCH, 1},
    {"node1.e-xample", 22, "*.example " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "*.example,!node1.example " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "!node1.example,*.example " ED "\n", KNOWN_UNKNOWN, 0},
    {"node2.example", 22, "!node1.example,*.example " ED "\n", KNOWN_MATCH, 1},
    {"node2.example", 22, "!node1.example " ED "\n", KNOWN_UNKNOWN, 0},
    /* ports */
    {"node1.example", 2222, "[node1.example]:2222 " ED "\n", KNOWN_MATCH, 1},
    {"node1.example", 2222, "[node*]:2222 " ED "\n", KNOWN_MATCH, 1},
    {"node1.example", 2222, "[node1.example]:2223 " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "[node1.example]:2222 " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 2222, "node1.example " ED "\n", KNOWN_MATCH, 1},
    {"node1.example", 2222, "node1.example " OTHER "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 2222, "node1.example " ED "\n[node1.example]:2222 " OTHER "\n", KNOWN_CHANGED,
     2},
    {"::1", 22, "::1 " ED "\n", KNOWN_MATCH, 1},
    {"::1", 2222, "[::1]:2222 " ED "\n", KNOWN_MATCH, 1},
    /* hashed */
    {"node1.example", 22, HASHED " " ED "\n", KNOWN_MATCH, 1},
    {"Node1.Example", 22, HASHED " " ED "\n", KNOWN_MATCH, 1},
    {"node2.example", 22, HASHED " " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 2222, HASHED_2222 " " OTHER "\n", KNOWN_CHANGED, 1},
    {"node1.example", 2222, HASHED " " ED "\n", KNOWN_MATCH, 1},
    {"node1.example", 22, HASHED_2222 " " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "|1|WG6Z3Hp5t3QnMWGkIcSw7sw2sJY=|bad " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "|2|x|y " ED "\n", KNOWN_UNKNOWN, 0},
    /* markers */
    {"node1.example", 22, "@revoked * " ED "\n", KNOWN_REVOKED, 1},
    {"node1.example", 22, "node1.example " ED "\n@revoked node1.example " ED "\n", KNOWN_REVOKED,
     2},
    {"node1.example", 2222, "@revoked node1.example " ED "\n", KNOWN_REVOKED, 1},
    {"node1.example", 22, "@revoked * " OTHER "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "@revoked node2.example " ED "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "@revoked " HASHED " " ED "\n", KNOWN_REVOKED, 1},
    {"node1.example", 22, "@cert-authority *.example " OTHER "\n", KNOWN_UNDECIDABLE, 1},
    {"node1.example", 22, "@cert-authority *.example " ED "\n", KNOWN_UNDECIDABLE, 1},
    {"node1.example", 2222, "@cert-authority node1.example " OTHER "\n", KNOWN_UNDECIDABLE, 1},
    {"node1.example", 22, "@cert-authority *.org " OTHER "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "@cert-authority * " OTHER "\nnode1.example " ED "\n", KNOWN_MATCH, 2},
    {"node1.example", 22, "@cert-authority * " EC "\nnode1.example " OTHER "\n", KNOWN_UNDECIDABLE,
     1},
    {"node1.example", 22, "@cert-authority * " OTHER "\n@revoked * " ED "\n", KNOWN_REVOKED, 2},
    {"node1.example", 22, "@unheard-of * " ED "\n", KNOWN_UNKNOWN, 0},
    /* what makes no sense is skipped */
    {"node1.example", 22, "node1.example\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "node1.example ssh-ed25519\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "node1.example ssh-ed25519 !!!!\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "node1.example ssh-rsa " ED_BASE64 "\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "node1.example 1024 35 123456\n", KNOWN_UNKNOWN, 0},
    {"node1.example", 22, "node1.example ssh-ed25519 AAAA\n@revoked\nnode1.example " ED "\n",
     KNOWN_MATCH, 3},
};

/* Every line of a file, as if the index chose none. */
static void read_all(struct known_hosts *known, const char *text, size_t length)
{
    struct byte_view left = {.at = (const unsigned char *)text, .length = length}, line;

    for (int number = 1; known_hosts_next_line(&left, &line); number++)
        known_hosts_read_line(known, "F", number, line);
}

static void gives_the_verdict_of_each_line(void **state)
{
    (void)state;
    unsigned char room[256];
    struct byte_view key = key_of(ED_BASE64, room);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct known_hosts *known = known_hosts_create(cases[i].name, cases[i].port);
        read_all(known, cases[i].text, strlen(cases[i].text));
        struct known_answer answer = known_hosts_check(known, key);
        if (answer.verdict != cases[i].verdict || answer.line != cases[i].line)
            print_error("%s:%d: %s\n", cases[i].name, cases[i].port, cases[i].text);
        assert_int_equal(answer.verdict, cases[i].verdict);
        assert_int_equal(answer.line, cases[i].line);
        if (cases[i].line > 0)
            assert_string_equal(answer.file, "F");
        known_hosts_destroy(known);
    }
}

static void every_cut_of_a_file_is_survived(void **state)
{
    (void)state;
    static const char text[] = "@cert-authority *.example " EC "\n" HASHED " " ED "\n"
                               "@revoked [node1.example]:2222,!x " OTHER "\r\n\0\xff\n* " EC;
    unsigned char room[256];
    struct byte_view key = key_of(ED_BASE64, room);

    for (size_t length = 0; length < sizeof text; length++) {
        struct known_hosts *known = known_hosts_create("node1.example", 2222);
        char *copy = mem_dup(text, length + 1); /* of its own size, so that ASan sees the end */
        read_all(known, copy, length);
        (void)known_hosts_check(known, key);
        known_hosts_destroy(known);
        free(copy);
    }
}

static void lists_the_types_of_plain_keys(void **state)
{
    (void)state;
    static const char text[] = "n " EC "\nn " ED "\nn " OTHER "\n@revoked n ssh-rsa "
                               "AAAAB3NzaC1yc2EAAAAB\n";
    struct known_hosts *known = known_hosts_create("n", 22);

    read_all(known, text, strlen(text));
    assert_int_equal(known->types.count, 2);
    assert_string_equal(known->types.items[0], "ecdsa-sha2-nistp256");
    assert_string_equal(known->types.items[1], "ssh-ed25519");
    known_hosts_destroy(known);
}

static void a_made_line_is_understood_again(void **state)
{
    (void)state;
    unsigned char room[256], salt[20] = {1, 2, 3};
    struct byte_view key = key_of(ED_BASE64, room);

    for (int hashed = 0; hashed < 2; hashed++) {
        for (int port = 22; port < 24; port++) {
            AUTO_BUF struct buf line = BUF_INIT(1024);
            struct known_hosts *known = known_hosts_create("Node1.example", port);
            assert_int_equal(known_hosts_line(known, key, hashed ? salt : NULL, &line), 0);
            assert_int_equal(strstr(buf_text(&line), "node1") == NULL, hashed);
            assert_int_equal(known_hosts_check(known, key).verdict, KNOWN_UNKNOWN);
            read_all(known, buf_text(&line), line.length);
            assert_int_equal(known_hosts_check(known, key).verdict, KNOWN_MATCH);
            known_hosts_destroy(known);
        }
    }
}

static void fingerprints_are_those_of_ssh_keygen(void **state)
{
    (void)state;
    unsigned char room[256];
    struct byte_view key = key_of(ED_BASE64, room);
    char *AUTO_FREE print = fingerprint_new(key.at, key.length);

    assert_string_equal(print, "SHA256:VEi6nB3LFmYAZIVcXSiFOrQ91tEx+Ws9SR19LKAk1K0");
}

/* Many lines about one host: the last one counts as the first does. */
static void many_lines(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = BUF_INIT(100000);
    unsigned char room[256];
    struct known_hosts *known = known_hosts_create("node1.example", 22);
    for (int i = 0; i < 40; i++)
        buf_puts(&text, "node1.example " OTHER "\n");
    buf_puts(&text, "node1.example " ED "\n");
    read_all(known, buf_text(&text), text.length);
    struct known_answer answer = known_hosts_check(known, key_of(ED_BASE64, room));
    assert_int_equal(answer.verdict, KNOWN_MATCH);
    assert_int_equal(answer.line, 41);
    known_hosts_destroy(known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_lines),
        cmocka_unit_test(gives_the_verdict_of_each_line),
        cmocka_unit_test(every_cut_of_a_file_is_survived),
        cmocka_unit_test(lists_the_types_of_plain_keys),
        cmocka_unit_test(a_made_line_is_understood_again),
        cmocka_unit_test(fingerprints_are_those_of_ssh_keygen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
