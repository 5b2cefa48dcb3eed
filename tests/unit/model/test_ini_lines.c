/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/settings/ini_lines.h"

/* "line:[section]" and "line:section/key=value", '|' behind each. */
static int write_section(void *context, const struct ini_place *place, const char *name,
                         struct error *err)
{
    if (strcmp(name, "stop") == 0)
        return error_status(err, STATUS_USAGE, "%s:%d: stopped", place->file, place->line);
    return buf_printf(context, "%d:[%s]|", place->line, name);
}

static int write_pair(void *context, const struct ini_place *place, const char *section,
                      const char *key, const char *value, struct error *err)
{
    if (strcmp(key, "stop") == 0)
        return error_status(err, STATUS_USAGE, "%s:%d: stopped", place->file, place->line);
    return buf_printf(context, "%d:%s/%s=%s|", place->line, section, key, value);
}

static const struct ini_reader reader = {.section = write_section, .pair = write_pair};

static void expect(const char *text, const char *expected)
{
    struct buf got AUTO_BUF = BUF_INIT(1 << 20);
    struct error err = ERROR_INIT;
    if (ini_lines_read(text, "f", &reader, &got, &err) < 0)
        fail_msg("'%s' was refused: %s", text, err.text);
    assert_string_equal(buf_text(&got), expected);
}

static void refuse(const char *text, const char *expected)
{
    struct buf got AUTO_BUF = BUF_INIT(1 << 20);
    struct error err = ERROR_INIT;
    assert_int_equal(ini_lines_read(text, "f", &reader, &got, &err), -1);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_int_equal(ini_lines_read(text, "f", &reader, &got, NULL), -1);
}

static void test_lines(void **state)
{
    (void)state;
    expect("", "");
    expect("a = 1\n", "1:/a=1|");
    expect("[s]\n\na=1\nb: 2", "1:[s]|3:s/a=1|4:s/b=2|");
    expect("\xef\xbb\xbf[s]\r\na=1\r\n", "1:[s]|2:s/a=1|");
    expect("[s]\na=\n[t]\n[u]\n", "1:[s]|2:s/a=|3:[t]|4:[u]|");
    expect("[s]\n  a = 1\n    b = 2\n", "1:[s]|2:s/a=1|3:s/b=2|"); /* no continuations */
    expect("[s]\na = x = y\nb = p:q\n", "1:[s]|2:s/a=x = y|3:s/b=p:q|");
}

static void test_comments(void **state)
{
    (void)state;
    expect("; x\n# y\n  # z\n[s] ; t\na = 1 ; u\nb = c;d\ne = #f\n",
           "4:[s]|5:s/a=1|6:s/b=c;d|7:s/e=#f|");
    expect("[s] # t\n[u;v#w]\n", "1:[s]|2:[u;v#w]|");
}

static void test_names_with_brackets(void **state)
{
    (void)state;
    expect("[ host n[01-04] ]\na=1\n", "1:[host n[01-04]]|2:host n[01-04]/a=1|");
    expect("[host [fe80::1]]\n[]\n", "1:[host [fe80::1]]|2:[]|");
}

/* Quotes around a whole value go, and keep the blanks and semicolons inside. */
static void test_quotes(void **state)
{
    (void)state;
    expect("[s]\na = \"%r> \"\nb: ' x' \r\n", "1:[s]|2:s/a=%r> |3:s/b= x|");
    expect("a = \"p ; q\" ; comment\nb = ''\nc=\"it's\"\n", "1:/a=p ; q|2:/b=|3:/c=it's|");
    expect("a = \"x\" y\nb = \"open\nc = x \"y\"\nd = \"\n",
           "1:/a=\"x\" y|2:/b=\"open|3:/c=x \"y\"|4:/d=\"|");
    expect("a = \"x\" \"y\"\nb = \"x\";y\n", "1:/a=\"x\" \"y\"|2:/b=\"x\";y|");
    expect("a b = \"x \"\nNEXT = 1\n", "1:/a b=x |2:/NEXT=1|");
    refuse("a ; b = \"x\"\n", "f:1: 'a ; b = \"x\"': expected [section] or key = value");
    char *word AUTO_FREE = mem_alloc(401);
    memset(word, 'w', 400);
    char *text AUTO_FREE = mem_printf("k = \"%s \" ; c\n", word);
    char *expected AUTO_FREE = mem_printf("1:/k=%s |", word);
    expect(text, expected);
}

/* inih cuts lines at 200 bytes and sections at 50. */
static void test_long(void **state)
{
    (void)state;
    for (size_t length = 30; length < 420; length++) {
        char *word AUTO_FREE = mem_alloc(length + 1);
        memset(word, 'w', length);
        char *text AUTO_FREE = mem_printf("[%s]\nk = %s ; c\nl=1\n", word, word);
        char *expected AUTO_FREE = mem_printf("1:[%s]|2:%s/k=%s|3:%s/l=1|", word, word, word, word);
        expect(text, expected);
    }
    char key[400];
    memset(key, 'k', sizeof(key));
    memcpy(key + sizeof(key) - 4, "=1\n", 4);
    refuse(key, "f:1: the line is too long");
}

static void test_neither(void **state)
{
    (void)state;
    refuse("[s]\nnonsense\n", "f:2: 'nonsense': expected [section] or key = value");
    refuse("[s\n", "f:1: '[s': expected [section] or key = value");
    refuse("a=1\n[s] x\n", "f:2: '[s] x': expected [section] or key = value");
    refuse("[s]\nbad\n[stop]\n",
           "f:2: 'bad': expected [section] or key = value"); /* the first counts */
    refuse("[s]\n[stop]\nbad\n", "f:2: stopped");
    refuse("[s]\na=1\nstop=1\nb=1\n", "f:3: stopped");
}

static void test_only_pairs(void **state)
{
    (void)state;
    static const struct ini_reader pairs = {.pair = write_pair};
    struct buf got AUTO_BUF = BUF_INIT(1 << 20);
    struct error err = ERROR_INIT;
    assert_int_equal(ini_lines_read("[stop]\na=1\n", "f", &pairs, &got, &err), 0);
    assert_string_equal(buf_text(&got), "2:stop/a=1|");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_comments),
        cmocka_unit_test(test_names_with_brackets),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_neither),
        cmocka_unit_test(test_only_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
