/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines and temporary files for the tests of the cli room. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "cli/command_line.h"

/* Words separated by blanks; a word in |bars| keeps its blanks. */
static inline void split_words(const char *text, struct strv *out)
{
    strv_add(out, "hvdrun");
    while (*text != '\0') {
        char end = *text == '|' ? '|' : ' ';
        text += end == '|';
        size_t length = strcspn(text, end == '|' ? "|" : " ");
        strv_add_n(out, text, length);
        text += length;
        text += end == '|' && *text == '|';
        text += strspn(text, " ");
    }
}

/* Parses `text` under the environment `env` (NULL: an empty one). */
static inline int parse_env(const char *text, char *const *env, struct command_line *line,
                            struct error *err)
{
    static char *const nothing[] = {NULL};
    struct strv words AUTO_STRV = STRV_INIT;
    split_words(text, &words);
    *err = (struct error)ERROR_INIT;
    return command_line_parse((int)words.count, words.items, env == NULL ? nothing : env, line,
                              err);
}

static inline void must_parse(const char *text, char *const *env, struct command_line *line)
{
    struct error err;
    if (parse_env(text, env, line, &err) < 0)
        fail_msg("'%s' was refused: %s", text, err.text);
}

static inline void must_fail_env(const char *text, char *const *env, const char *expected)
{
    struct command_line line;
    struct error err;
    if (parse_env(text, env, &line, &err) == 0)
        fail_msg("'%s' was accepted", text);
    if (strcmp(err.text, expected) != 0)
        fail_msg("'%s'\n  said:     %s\n  expected: %s", text, err.text, expected);
    assert_int_equal(err.status, STATUS_USAGE);
    command_line_destroy(&line);
}

/* A new temporary folder with the file `name`; the caller removes both with remove_file(). */
static inline char *new_file(const char *name, const char *text)
{
    char folder[] = "/tmp/hvdrun-test-XXXXXX";
    if (mkdtemp(folder) == NULL)
        fail_msg("no temporary folder");
    char *path = mem_printf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        fail_msg("cannot write %s", path);
    return path;
}

static inline void remove_file(char *path)
{
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    free(path);
}

/* The option's value as text, "" when unset. The caller frees it. */
static inline char *value_of(const struct settings *settings, enum option_id id)
{
    struct buf text = BUF_INIT(4096);
    settings_format(settings, id, &text);
    return buf_take(&text);
}

static inline void value_is(const struct settings *settings, enum option_id id,
                            const char *expected)
{
    char *got = value_of(settings, id);
    if (strcmp(got, expected) != 0)
        fail_msg("%s is '%s', expected '%s'", option_info(id)->field, got, expected);
    free(got);
}
