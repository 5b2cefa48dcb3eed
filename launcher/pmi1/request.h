/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rank writes on the PMI-1 wire: lines, and blocks of lines for MPI_Comm_spawn. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "pmi1/types.h"

/*
 * One line of the PMI-1 wire: "cmd=put kvsname=... key=... value=...", words "name=value" separated
 * by blanks, the command first (as "cmd=" or, opening a block of several lines, "mcmd=").
 *
 * The value of a word named `value`, `port` or `msg` reaches to the end of the line, since it may
 * contain blanks. That of `service` reaches to the word `port` or to the end.
 */
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

/*
 * The request of MPI_Comm_spawn on the PMI-1 wire. Each program has a block of lines, from
 * "mcmd=spawn" to "endcmd", and the blocks of one request follow each other. A line is NAME=value,
 * and its value reaches to the end. Names come once, or count up, as in "arg1", "arg2". A request
 * with other lines is refused as a whole. Another library sends more than MPICH, or they are the
 * rest of a value with a line break. Each of its blocks must then say how many there are, and which
 * one it is: else nobody knows where the request ends.
 */
#define PMI1_SPAWN_LINE_MAX ((size_t)128 << 10) /* as much as Linux lets an argument have */
#define PMI1_SPAWN_BYTES_MAX ((size_t)8 << 20)
#define PMI1_SPAWN_APPS_MAX 4096
#define SPAWN_PREPUT_MAX 64 /* pairs; MPICH has one */

enum spawn_name {
    SPAWN_NPROCS,
    SPAWN_EXECNAME,
    SPAWN_TOTSPAWNS,
    SPAWN_SPAWNSSOFAR,
    SPAWN_ARGCNT,
    SPAWN_ARG,
    SPAWN_PREPUT_NUM,
    SPAWN_PREPUT_KEY,
    SPAWN_PREPUT_VAL,
    SPAWN_INFO_NUM,
    SPAWN_INFO_KEY,
    SPAWN_INFO_VAL,
    SPAWN_NAMES
};

struct spawn_block {
    bool open;                    /* between mcmd=spawn and endcmd */
    size_t bytes;                 /* of all blocks, with what keeps them */
    int64_t total;                /* programs, as the last block said */
    int64_t counts[SPAWN_NAMES];  /* lines of this block */
    int64_t numbers[SPAWN_NAMES]; /* as they say */
    char *key;                    /* of a pair, until its value comes */
    char *path;                   /* the folder of the program; NULL: as it is found */
    char *refusal;                /* what is wrong with the request; NULL: nothing so far */
    struct pmi1_spawn request;    /* of the blocks so far */
};

/* A block opens: the first one, or the next one of a request that is due. */
void spawn_block_open(struct spawn_block *block);
/* A line of the open block. 1: the request is complete, also if it is refused; 0: it is not. -1:
 * nobody can say where it ends, or it is too large. */
int spawn_block_line(struct spawn_block *block, const char *bytes, size_t length,
                     struct error *err);
/* Another block must follow. */
bool spawn_block_is_due(const struct spawn_block *block);
void spawn_block_clear(struct spawn_block *block);
