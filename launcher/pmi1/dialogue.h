/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the PMI-1 engine: the members of this node, their key-value spaces and the barrier.
 * Private to the engine: commands.c and engine.c work on it.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"
#include "pmi1/kvs.h"
#include "pmi1/line.h"
#include "pmi1/types.h"

#define PMI1_SPACES_MAX 64

struct member {
    int rank, local_rank, app;
    enum pmi1_state state;
    struct buf input; /* the line that is not complete yet */
    bool in_block;    /* between mcmd=spawn and endcmd */
    int64_t spawns_wanted, spawns_seen;
};

struct space {
    char *name; /* NULL: free */
    struct kvs *kvs;
};

struct pmi1_engine {
    struct pmi1_ops ops;
    void *context;
    int size, universe_size, node_count, local_count;
    struct member *members;
    struct space spaces[PMI1_SPACES_MAX]; /* the first is the job's own */
    int spaces_made;
    int waiting;        /* members in the barrier */
    struct buf pending; /* pairs put since the last barrier, for the other nodes */
    struct strv names;  /* published here: "service=port", blanks and '=' of the service quoted */
};

void pmi1_answer(struct pmi1_engine *engine, const struct member *member, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The last local member releases the barrier, or with several nodes announces it to them. */
int pmi1_enter_barrier(struct pmi1_engine *engine, struct member *member, struct error *err);
void pmi1_release_barrier(struct pmi1_engine *engine);
struct kvs *pmi1_space(struct pmi1_engine *engine, const char *name); /* NULL: none */
