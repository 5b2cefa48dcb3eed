/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of the PMI-1 wire: "cmd=put kvsname=... key=... value=...", words "name=value" separated
 * by blanks, the command first (as "cmd=" or, opening a block of several lines, "mcmd=").
 *
 * The value of a word named `value`, `port` or `msg` reaches to the end of the line, since it may
 * contain blanks. That of `service` reaches to the word `port` or to the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define PMI1_LINE_MAX 4096
#define PMI1_WORDS_MAX 16

struct pmi1_line {
    char text[PMI1_LINE_MAX]; /* the names and values point in here */
    const char *command;
    bool block; /* "mcmd=": more lines follow until "endcmd" */
    const char *names[PMI1_WORDS_MAX];
    const char *values[PMI1_WORDS_MAX];
    size_t words;
};

/* `length` bytes without the newline. -1: not a line of this protocol. */
int pmi1_line_parse(struct pmi1_line *line, const char *bytes, size_t length, struct error *err);

/* NULL: the line has no such word. */
const char *pmi1_line_get(const struct pmi1_line *line, const char *name);
