/* SPDX-License-Identifier: Apache-2.0 */
/* Makes lines of the bytes that workers write, and ends barriers that other nodes share. */
#include "pmi1/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pmi1/dialogue.h"
#include "pmi1/engine_test.h"

/* ---- The process mapping --------------------------------------------------------------------- */

/*
 * The value of PMI_process_mapping, from which MPICH learns which ranks share a node:
 * "(vector,(first node,nodes,ranks on each),...)", in the order of the ranks. Adjacent nodes with
 * the same number of ranks in a row form one block. Ranks that go round the nodes give many blocks.
 * If these are too many, the blocks of one round are enough: MPICH repeats them for further ranks.
 */

struct block {
    int first, nodes, ranks; /* ranks in a row on each of so many nodes */
};

static int run_length(const int *node_of, int size, int at)
{
    int length = 1;
    while (at + length < size && node_of[at + length] == node_of[at])
        length++;
    return length;
}

/* The block that begins with rank `at`. */
static struct block block_at(const int *node_of, int size, int at)
{
    struct block block = {node_of[at], 1, run_length(node_of, size, at)};
    for (at += block.ranks; at < size && node_of[at] == block.first + block.nodes;
         at += block.ranks) {
        if (run_length(node_of, size, at) != block.ranks)
            break;
        block.nodes++;
    }
    return block;
}

static char *write_blocks(const int *node_of, int size, int limit)
{
    struct buf text AUTO_BUF = BUF_INIT((size_t)limit);
    int full = buf_puts(&text, "(vector");
    for (int at = 0; at < size && full == 0;) {
        struct block block = block_at(node_of, size, at);
        full = buf_printf(&text, ",(%d,%d,%d)", block.first, block.nodes, block.ranks);
        at += block.nodes * block.ranks;
    }
    if (full == 0)
        full = buf_putc(&text, ')');
    return full == 0 ? buf_take(&text) : NULL;
}

/* The length of the shortest beginning that, said again and again, gives all of it (the last time
 * perhaps not to its end): by the longest part that is beginning and end at once (Knuth, Morris,
 * Pratt). */
static int period(const int *node_of, int size)
{
    int *overlap AUTO_FREE = mem_array((size_t)size, sizeof(*overlap));
    for (int i = 1, length = 0; i < size; i++) {
        while (length > 0 && node_of[i] != node_of[length])
            length = overlap[length - 1];
        length += node_of[i] == node_of[length];
        overlap[i] = length;
    }
    return size - overlap[size - 1];
}

/* MPICH expects ranks on each node from the first to the last, so others do not count. The caller
 * frees it. */
static int *close_up(const int *node_of, int size, int node_count)
{
    int *number = mem_array((size_t)node_count + 1, sizeof(*number));
    int *closed = mem_array((size_t)size + 1, sizeof(*closed));
    int next = 0;
    for (int rank = 0; rank < size; rank++)
        number[node_of[rank]] = 1;
    for (int node = 0; node < node_count; node++)
        number[node] = number[node] != 0 ? next++ : -1;
    for (int rank = 0; rank < size; rank++)
        closed[rank] = number[node_of[rank]];
    free(number);
    return closed;
}

char *mapping_text(const int *node_of, int size, int limit)
{
    char *text = write_blocks(node_of, size, limit);
    if (text != NULL || size == 0)
        return text;
    return write_blocks(node_of, period(node_of, size), limit);
}

/* ---- The engine ------------------------------------------------------------------------------ */

/* What the ranks find there from the beginning, on each node. */
static void fill_space(struct pmi1_engine *engine, const struct pmi1_config *config)
{
    struct kvs *kvs = &engine->spaces[0].kvs;
    int *node_of AUTO_FREE = close_up(config->node_of, config->size, config->node_count);
    char *mapping AUTO_FREE = mapping_text(node_of, config->size, PMI1_VALUE_MAX - 1);
    if (mapping != NULL)
        kvs_put(kvs, PMI1_MAPPING_KEY, mapping);
    for (size_t i = 0; i + 1 < config->preput_count; i += 2) /* request.c has looked at them */
        kvs_put(kvs, config->preput[i], config->preput[i + 1]);
}

struct pmi1_engine *pmi1_engine_create(const struct pmi1_config *config, const struct pmi1_ops *ops,
                                       void *context)
{
    struct pmi1_engine *engine = mem_alloc(sizeof(*engine));
    engine->ops = *ops;
    engine->context = context;
    engine->size = config->size;
    engine->universe_size = config->universe_size > 0 ? config->universe_size : config->size;
    engine->node_count = config->node_count;
    engine->local_count = config->local_count;
    engine->members = mem_array((size_t)config->local_count, sizeof(*engine->members));
    for (int i = 0; i < config->local_count; i++) {
        engine->members[i] = (struct member){.rank = config->local_ranks[i], .local_rank = i};
        engine->members[i].app = config->local_apps != NULL ? config->local_apps[i] : 0;
        buf_init(&engine->members[i].input, PMI1_SPAWN_LINE_MAX);
    }
    engine->spawned = config->spawned;
    engine->spaces[0].name = mem_strdup(config->kvsname);
    buf_init(&engine->pending, KVS_BYTES_MAX);
    fill_space(engine, config);
    return engine;
}

void pmi1_engine_destroy(struct pmi1_engine *engine)
{
    if (engine == NULL)
        return;
    for (int i = 0; i < engine->local_count; i++) {
        buf_destroy(&engine->members[i].input);
        spawn_block_clear(&engine->members[i].block);
    }
    free(engine->members);
    for (int i = 0; i < PMI1_SPACES_MAX; i++) {
        free(engine->spaces[i].name);
        kvs_clear(&engine->spaces[i].kvs);
    }
    buf_destroy(&engine->pending);
    free(engine);
}

static int compare_ranks(const void *rank, const void *member)
{
    int one = *(const int *)rank, other = ((const struct member *)member)->rank;
    return (one > other) - (one < other);
}

static struct member *find_member(const struct pmi1_engine *engine, int rank)
{
    return bsearch(&rank, engine->members, (size_t)engine->local_count, sizeof(*engine->members),
                   compare_ranks);
}

/* One line "space key value", as dialogue.c wrote it on some node. */
static int add_pair(struct pmi1_engine *engine, char *line, struct error *err)
{
    char *key = strchr(line, ' ');
    char *value = key != NULL ? strchr(key + 1, ' ') : NULL;
    if (value == NULL)
        return error_set(err, "the key-value pairs of another node are damaged");
    *key = '\0';
    *value = '\0';
    struct kvs *kvs = pmi1_space(engine, line);
    /* Our own pairs come back too, and a space that another node's rank made for itself is news. */
    if (kvs != NULL)
        kvs_put(kvs, key + 1, value + 1);
    return 0;
}

int pmi1_barrier_out(struct pmi1_engine *engine, const char *bytes, size_t length,
                     struct error *err)
{
    if (engine->node_count <= 1 || engine->waiting < engine->local_count)
        return error_set(err, "a PMI-1 barrier ended, but not all ranks of this node wait in it");
    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        if (end == NULL || memchr(bytes, '\0', (size_t)(end - bytes)) != NULL)
            return error_set(err, "the key-value pairs of another node are cut off");
        char *line AUTO_FREE = mem_strndup(bytes, (size_t)(end - bytes));
        if (add_pair(engine, line, err) < 0)
            return -1;
        length -= (size_t)(end - bytes) + 1;
        bytes = end + 1;
    }
    pmi1_release_barrier(engine);
    return 0;
}

/* Also inside a block: an abort may be a library's last word. */
static bool is_command(const char *bytes, size_t length)
{
    static const char begin[] = "cmd=";
    size_t skip = length > 0 && bytes[0] == 'm';
    return length >= skip + strlen(begin) && memcmp(bytes + skip, begin, strlen(begin)) == 0;
}

static int take_line(struct pmi1_engine *engine, struct member *member, const char *bytes,
                     size_t length, struct error *err)
{
    if (member->block.open && !is_command(bytes, length))
        return pmi1_block_line(engine, member, bytes, length, err);
    struct pmi1_line line;
    if (pmi1_line_parse(&line, bytes, length, err) < 0)
        return -1;
    return pmi1_command(engine, member, &line, err);
}

/* The first piece of the bytes, up to a newline or all of them; -1: a broken line. */
static int take_piece(struct pmi1_engine *engine, struct member *member, const char *bytes,
                      size_t length, bool complete, struct error *err)
{
    size_t limit = member->block.open ? PMI1_SPAWN_LINE_MAX : (size_t)PMI1_LINE_MAX;
    if (member->input.length + length >= limit)
        return error_set(err, "a line of more than %zu bytes", limit - 1);
    if (complete && member->input.length == 0)
        return take_line(engine, member, bytes, length, err);
    buf_append(&member->input, bytes, length);
    if (!complete)
        return 0;
    int result = take_line(engine, member, buf_text(&member->input), member->input.length, err);
    buf_clear(&member->input);
    return result;
}

static int break_off(struct pmi1_engine *engine, struct member *member, struct error *err)
{
    if (member->state == PMI1_BARRIER)
        engine->waiting--;
    member->state = PMI1_BROKEN;
    member->asking = PMI1_ASKS_NOTHING;
    return error_wrap(err, "rank %d does not speak PMI-1, the MPI start-up protocol", member->rank);
}

/* A rank that waits has said nothing behind its request. If it has, what seemed to be the end was
 * not: then it has no answer. */
static void answer_refused(struct pmi1_engine *engine, struct member *member)
{
    if (!member->refused || member->asking != PMI1_ASKS_SPAWN || member->input.length > 0)
        return;
    member->refused = false;
    pmi1_answer_spawn(engine, member, false);
}

int pmi1_receive(struct pmi1_engine *engine, int rank, const char *bytes, size_t length,
                 struct error *err)
{
    struct member *member = find_member(engine, rank);
    if (member == NULL)
        return error_set(err, "rank %d is not one of this node's PMI-1 ranks", rank);
    while (length > 0 && member->state != PMI1_BROKEN && member->state != PMI1_ABORTED) {
        const char *newline = memchr(bytes, '\n', length);
        size_t piece = newline != NULL ? (size_t)(newline - bytes) : length;
        if (take_piece(engine, member, bytes, piece, newline != NULL, err) < 0)
            return break_off(engine, member, err);
        size_t used = piece + (newline != NULL ? 1 : 0);
        bytes += used;
        length -= used;
    }
    answer_refused(engine, member);
    return 0;
}

int pmi1_spawn_unended(struct pmi1_engine *engine, int rank, struct error *err)
{
    struct member *member = find_member(engine, rank);
    if (member == NULL || (member->block.refusal == NULL && !member->refused) ||
        member->state == PMI1_BROKEN || member->state == PMI1_ABORTED)
        return 0;
    error_set(err, "a spawn without an end");
    return break_off(engine, member, err);
}

void pmi1_name_reply(struct pmi1_engine *engine, int rank, enum pmi1_name_request request,
                     const char *port)
{
    struct member *member = find_member(engine, rank);
    if (member != NULL && member->asking == PMI1_ASKS_NAME)
        pmi1_answer_name(engine, member, request, port);
}

void pmi1_spawn_reply(struct pmi1_engine *engine, int rank, bool ok)
{
    struct member *member = find_member(engine, rank);
    if (member != NULL && member->asking == PMI1_ASKS_SPAWN && !member->refused)
        pmi1_answer_spawn(engine, member, ok);
}

enum pmi1_state pmi1_rank_state(const struct pmi1_engine *engine, int rank)
{
    const struct member *member = find_member(engine, rank);
    return member != NULL ? member->state : PMI1_SILENT;
}

static void set_number(struct strv *env, const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    strv_env_set(env, name, text);
}

void pmi1_worker_env(const struct pmi1_engine *engine, int rank, int fd, struct strv *env)
{
    const struct member *member = find_member(engine, rank);
    set_number(env, "PMI_FD", fd);
    set_number(env, "PMI_RANK", rank);
    set_number(env, "PMI_SIZE", engine->size);
    set_number(env, "MPI_LOCALRANKID", member != NULL ? member->local_rank : 0);
    set_number(env, "MPI_LOCALNRANKS", engine->local_count);
    if (engine->spawned)
        strv_env_set(env, "PMI_SPAWNED", "1");
    strv_env_set(env, "GFORTRAN_UNBUFFERED_PRECONNECTED", "y");
}
