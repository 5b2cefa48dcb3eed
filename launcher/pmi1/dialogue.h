/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the PMI-1 engine, which is the members of this node, their key-value spaces and the
 * barrier; and the answer to each command. Private to the engine.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "pmi1/request.h"
#include "pmi1/types.h"

/*
 * A key-value space of PMI-1: text keys to text values, in the order in which they arrived.
 *
 * A key is written once: PMI-1 has no overwriting, and a second value for a key would be a race
 * between readers on different nodes. KVS_BYTES_MAX limits the whole space.
 */
#define KVS_BYTES_MAX ((size_t)256 << 20)

enum kvs_result { KVS_OK, KVS_DUPLICATE, KVS_FULL };

struct kvs_entry {
    const char *value; /* follows the key */
    char key[];
};

struct kvs {                    /* all zero: empty */
    struct kvs_entry **entries; /* their order is what getbyidx walks */
    size_t count, room;
    struct map by_key;
    size_t bytes;
};

void kvs_clear(struct kvs *kvs);

/* Keys and values are copied. KVS_DUPLICATE leaves the first value in place. */
enum kvs_result kvs_put(struct kvs *kvs, const char *key, const char *value);
const char *kvs_get(const struct kvs *kvs, const char *key); /* borrowed; NULL: no such key */

#define PMI1_SPACES_MAX 64

/* What a rank waits for, one thing at a time. */
enum pmi1_asking { PMI1_ASKS_NOTHING, PMI1_ASKS_NAME, PMI1_ASKS_SPAWN };

struct member {
    int rank, local_rank, app;
    enum pmi1_state state;
    struct buf input; /* the line that is not complete yet */
    struct spawn_block block;
    enum pmi1_asking asking;
    bool refused; /* its request is complete: it gets its answer when its bytes are read */
};

struct space {
    char *name; /* NULL: free */
    struct kvs kvs;
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
    bool spawned;
};

void pmi1_release_barrier(struct pmi1_engine *engine);
struct kvs *pmi1_space(struct pmi1_engine *engine, const char *name); /* NULL: none */

/* -1: the line is not a command, or not one that may come now. */
int pmi1_command(struct pmi1_engine *engine, struct member *member, const struct pmi1_line *line,
                 struct error *err);
/* A line inside a block; -1: rubbish. */
int pmi1_block_line(struct pmi1_engine *engine, struct member *member, const char *bytes,
                    size_t length, struct error *err);
void pmi1_answer_spawn(struct pmi1_engine *engine, struct member *member, bool ok);
/* Answers a request for a name: `port` for a lookup that found something, "" for the others, NULL:
 * failed. */
void pmi1_answer_name(struct pmi1_engine *engine, struct member *member,
                      enum pmi1_name_request request, const char *port);
