/* SPDX-License-Identifier: Apache-2.0 */
/* Environments as text, one variable a line, and what must come out of them. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/strv.h"
#include "model/allocation/allocation.h"

struct expected_allocation {
    const char *name;
    const char *env;   /* lines */
    const char *file;  /* bytes of the file that the environment names; NULL: none */
    const char *hosts; /* "node1:4 node2:3", '?' behind slots that nobody gave */
    int np;
};

static inline void env_of(const char *lines, struct strv *out)
{
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        if (length > 0)
            strv_add_n(out, lines, length);
        lines += length + (lines[length] == '\n');
    }
}

static inline char *hosts_of(const struct host_list *list)
{
    struct buf text = BUF_INIT(16 << 20);
    for (size_t i = 0; i < list->count; i++)
        buf_printf(&text, "%s%s:%d%s", i > 0 ? " " : "", list->items[i].name, list->items[i].slots,
                   list->items[i].slots_given ? "" : "?");
    return buf_take(&text);
}

/* Detects and parses; `out` is the caller's to destroy. */
static inline int parse_case(const char *lines, const char *file, enum allocation_kind kind,
                             struct allocation *out, struct error *err)
{
    AUTO_STRV struct strv env = STRV_INIT;
    env_of(lines, &env);
    const char *path = NULL;
    enum allocation_kind found = allocation_detect(strv_items(&env), &path);
    *out = (struct allocation){.kind = ALLOCATION_NONE};
    *err = (struct error)ERROR_INIT;
    if (found != kind)
        fail_msg("found %s, not %s in\n%s", allocation_name(found), allocation_name(kind), lines);
    if ((path == NULL) != (file == NULL))
        fail_msg("a file is %s in\n%s", path == NULL ? "not asked for" : "asked for", lines);
    return allocation_parse(found, strv_items(&env), path, file, file == NULL ? 0 : strlen(file),
                            out, err);
}

static inline void expect_case(const struct expected_allocation *expected,
                               enum allocation_kind kind)
{
    struct allocation got;
    struct error err;
    if (parse_case(expected->env, expected->file, kind, &got, &err) < 0)
        fail_msg("%s was refused: %s", expected->name, err.text);
    char *hosts AUTO_FREE = hosts_of(&got.hosts);
    if (strcmp(hosts, expected->hosts) != 0 || got.np != expected->np)
        fail_msg("%s: '%s' np %d, expected '%s' np %d", expected->name, hosts, got.np,
                 expected->hosts, expected->np);
    allocation_destroy(&got);
}

/* One line, STATUS_USAGE, with both texts in it. */
static inline void expect_refused(const char *lines, const char *file, enum allocation_kind kind,
                                  const char *where, const char *what)
{
    struct allocation got;
    struct error err;
    if (parse_case(lines, file, kind, &got, &err) == 0)
        fail_msg("accepted:\n%s%s", lines, file == NULL ? "" : file);
    if (strstr(err.text, where) == NULL || strstr(err.text, what) == NULL)
        fail_msg("\"%s\" lacks '%s' or '%s'", err.text, where, what);
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(err.status, STATUS_USAGE);
    allocation_destroy(&got);
}
