/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The story of a failure in at most EXPLAIN_LINES lines: what happened first, where, what it
 * caused, what the hosts say about it, which libraries were loaded, and what to do. Pure.
 *
 * It says only what the facts say. A kernel's line is quoted, and may be about something else.
 */
#pragma once

#include "base/buf.h"
#include "features/evidence/facts.h"

#define EXPLAIN_LINES 26

/* X(name, key in JSON, title, lines at most) */
#define EXPLAIN_PART_LIST(X)                                        \
    X(EXPLAIN_FIRST, "first", "what happened first", 4)             \
    X(EXPLAIN_WHERE, "where", "where", 2)                           \
    X(EXPLAIN_CAUSED, "caused", "what followed", 3)                 \
    X(EXPLAIN_HOSTS, "hosts", "what the hosts say", 3)              \
    X(EXPLAIN_LOADED, "libraries", "what the ranks have loaded", 5) \
    X(EXPLAIN_DO, "do", "what to do", 2)

enum explain_part {
#define EXPLAIN_ENUM(name, key, title, most) name,
    EXPLAIN_PART_LIST(EXPLAIN_ENUM)
#undef EXPLAIN_ENUM
        EXPLAIN_PARTS
};

struct explain_story {
    char *headline;
    struct strv parts[EXPLAIN_PARTS]; /* no part has more lines than the list says */
};

void explain_tell(const struct explain_facts *facts, struct explain_story *out);
void explain_story_destroy(struct explain_story *story);

const char *explain_part_key(enum explain_part part);
void explain_story_text(const struct explain_story *story, struct buf *out);
