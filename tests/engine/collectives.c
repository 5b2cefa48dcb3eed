/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property tests of an engine: each collective with each type, operation and size is compared with
 * a serial result (values.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "values.h"
#include "worker.h"

static const enum hvd_op ops[] = {HVD_SUM, HVD_MIN, HVD_MAX, HVD_PRODUCT};
static const size_t sizes[] = {0, 1, 1001, 50001};
#define TYPE(name, value, bytes, text) name,
static const enum hvd_type types[] = {HVD_TYPE_LIST(TYPE)};
#undef TYPE
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void try_allreduce(const struct worker *w, struct engine_comm *comm, enum hvd_type type,
                          enum hvd_op op, size_t count)
{
    struct error err = ERROR_INIT;
    void *data AUTO_FREE = mem_array(count, hvd_type_bytes((int)type));
    values_write(type, w->place.rank, 0, count, data);
    worker_check(w->engine->allreduce(comm, data, count, type, op, &err), &err, "allreduce");
    values_check("allreduce", &(struct reduction){type, op, w->place.size, NULL, 1, 1}, 0, count,
                 data);
}

/* Uneven: rank r gets more than r - 1, and the middle one gets nothing. */
static void try_reducescatter(const struct worker *w, struct engine_comm *comm, enum hvd_type type,
                              enum hvd_op op, size_t count)
{
    struct error err = ERROR_INIT;
    size_t counts[16] = {0}, total = 0, before = 0, bytes = hvd_type_bytes((int)type);
    for (int i = 0; i < w->place.size; i++) {
        counts[i] = w->place.size > 1 && i == w->place.size / 2 ? 0 : count / 2 + (size_t)i;
        before += i < w->place.rank ? counts[i] : 0;
        total += counts[i];
    }
    size_t mine = counts[w->place.rank];
    void *in AUTO_FREE = mem_array(total, bytes), *out AUTO_FREE = mem_array(mine, bytes);
    values_write(type, w->place.rank, 0, total, in);
    worker_check(w->engine->reducescatter(comm, in, out, counts, type, op, &err), &err,
                 "reducescatter");
    values_check("reducescatter", &(struct reduction){type, op, w->place.size, NULL, 1, 1}, before,
                 mine, out);
}

static void test_reductions(const struct worker *w, struct engine_comm *comm)
{
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t o = 0; o < COUNT(ops); o++)
            for (size_t s = 0; s < COUNT(sizes); s++) {
                try_allreduce(w, comm, types[t], ops[o], sizes[s]);
                try_reducescatter(w, comm, types[t], ops[o], sizes[s] / 4);
            }
}

static unsigned char byte_of(int from, int to, size_t i)
{
    return (unsigned char)values_seed(100 * from + to, i);
}

/* Bytes from rank `from` to rank `to`: some are 0. */
static size_t part(int from, int to, size_t count)
{
    return (size_t)((from * 7 + to * 3) % 4) * count / 2 + (count > 0 ? (size_t)from : 0);
}

static void try_alltoallv(const struct worker *w, struct engine_comm *comm, size_t count)
{
    struct error err = ERROR_INIT;
    size_t send[16], receive[16], out_total = 0, in_total = 0, me = 0;
    for (int i = 0; i < w->place.size; i++) {
        send[i] = part(w->place.rank, i, count);
        receive[i] = part(i, w->place.rank, count);
        in_total += send[i];
        out_total += receive[i];
    }
    unsigned char *in AUTO_FREE = mem_alloc(in_total), *out AUTO_FREE = mem_alloc(out_total);
    for (int to = 0; to < w->place.size; to++)
        for (size_t i = 0; i < send[to]; i++)
            in[me++] = byte_of(w->place.rank, to, i);
    worker_check(w->engine->alltoallv(comm, in, send, out, receive, &err), &err, "alltoallv");
    size_t at = 0;
    for (int from = 0; from < w->place.size; from++)
        for (size_t i = 0; i < receive[from]; i++)
            if (out[at++] != byte_of(from, w->place.rank, i))
                worker_fail("alltoallv: byte %zu from rank %d is wrong", i, from);
}

static void try_allgatherv(const struct worker *w, struct engine_comm *comm, size_t count,
                           bool in_place)
{
    struct error err = ERROR_INIT;
    size_t bytes[16], total = 0, before = 0, at = 0;
    for (int i = 0; i < w->place.size; i++) {
        bytes[i] = part(i, 1, count);
        before += i < w->place.rank ? bytes[i] : 0;
        total += bytes[i];
    }
    size_t mine = bytes[w->place.rank];
    unsigned char *out AUTO_FREE = mem_alloc(total), *own AUTO_FREE = mem_alloc(mine);
    unsigned char *in = in_place ? out + before : own;
    for (size_t i = 0; i < mine; i++)
        in[i] = byte_of(w->place.rank, 1, i);
    worker_check(w->engine->allgatherv(comm, in, out, bytes, &err), &err, "allgatherv");
    for (int from = 0; from < w->place.size; from++)
        for (size_t i = 0; i < bytes[from]; i++)
            if (out[at++] != byte_of(from, 1, i))
                worker_fail("allgatherv: byte %zu of rank %d is wrong", i, from);
}

static void try_broadcast(const struct worker *w, struct engine_comm *comm, size_t count, int root)
{
    struct error err = ERROR_INIT;
    unsigned char *data AUTO_FREE = mem_alloc(count);
    for (size_t i = 0; i < count; i++)
        data[i] = w->place.rank == root ? byte_of(root, 5, i) : 0;
    worker_check(w->engine->broadcast(comm, data, count, root, &err), &err, "broadcast");
    for (size_t i = 0; i < count; i++)
        if (data[i] != byte_of(root, 5, i))
            worker_fail("broadcast from rank %d: byte %zu of %zu is wrong", root, i, count);
}

static void test_moves(const struct worker *w, struct engine_comm *comm)
{
    struct error err = ERROR_INIT;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        try_alltoallv(w, comm, sizes[s]);
        try_allgatherv(w, comm, sizes[s], false);
        try_allgatherv(w, comm, sizes[s], true);
        for (int root = 0; root < w->place.size; root++)
            try_broadcast(w, comm, sizes[s], root);
        worker_check(w->engine->barrier(comm, &err), &err, "barrier");
    }
}

static size_t message_length(int rank, size_t count)
{
    return rank % 2 == 1 ? 0 : count / (size_t)(rank + 1);
}

static void try_messages(const struct worker *w, struct engine_comm *comm, size_t count)
{
    struct error err = ERROR_INIT;
    AUTO_BUF struct buf message = BUF_INIT(1 << 20), all = BUF_INIT(1 << 24);
    bool root = w->place.rank == 0;
    size_t lengths[16], at = 0, length = message_length(w->place.rank + 2, count);
    for (size_t i = 0; i < length; i++)
        buf_putc(&message, (char)byte_of(w->place.rank, 9, i));
    worker_check(w->engine->gather_messages(comm, buf_text(&message), length, root ? &all : NULL,
                                            root ? lengths : NULL, 20000, &err),
                 &err, "gather_messages");
    for (int from = 0; root && from < w->place.size; from++) {
        if (lengths[from] != message_length(from + 2, count))
            worker_fail("gather_messages: rank %d sent %zu bytes", from, lengths[from]);
        for (size_t i = 0; i < lengths[from]; i++)
            if ((unsigned char)buf_text(&all)[at++] != byte_of(from, 9, i))
                worker_fail("gather_messages: byte %zu of rank %d is wrong", i, from);
    }
    buf_clear(&message);
    for (size_t i = 0; root && i < count; i++)
        buf_putc(&message, (char)byte_of(0, 8, i));
    worker_check(w->engine->broadcast_message(comm, &message, 0, &err), &err, "broadcast_message");
    if (message.length != count)
        worker_fail("broadcast_message: %zu bytes came, not %zu", message.length, count);
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)buf_text(&message)[i] != byte_of(0, 8, i))
            worker_fail("broadcast_message: byte %zu is wrong", i);
}

static void try_words(const struct worker *w, struct engine_comm *comm, size_t count)
{
    struct error err = ERROR_INIT;
    uint64_t *words AUTO_FREE = mem_array(count, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = values_seed(w->place.rank, i);
    worker_check(w->engine->and_words(comm, words, count, 20000, &err), &err, "and_words");
    for (size_t i = 0; i < count; i++) {
        uint64_t expected = UINT64_MAX;
        for (int rank = 0; rank < w->place.size; rank++)
            expected &= values_seed(rank, i);
        if (words[i] != expected)
            worker_fail("and_words: word %zu of %zu is wrong", i, count);
    }
}

static void test_control(const struct worker *w, struct engine_comm *comm)
{
    static const size_t lengths[] = {0, 1, 247, 248, 249, 5000, 100000};
    for (size_t i = 0; i < COUNT(lengths); i++)
        try_messages(w, comm, lengths[i]);
    for (size_t i = 0; i < 6; i++)
        try_words(w, comm, i * i * i);
}

/* Sets of some ranks, in another order than the world's: their numbers are those of the list. */
static void test_sets(const struct worker *w)
{
    struct error err = ERROR_INIT;
    for (int first = 0; first < w->place.size; first++) {
        int ranks[16], count = 0, own = -1;
        for (int rank = w->place.size - 1; rank >= first; rank--) {
            own = rank == w->place.rank ? count : own;
            ranks[count++] = rank;
        }
        if (own < 0)
            continue;
        struct engine_comm *comm = NULL;
        worker_check(
            w->engine->comm_create(w->world, 100 + (uint64_t)first, ranks, count, &comm, &err),
            &err, "comm_create");
        uint32_t value = (uint32_t)ranks[own];
        worker_check(w->engine->broadcast(comm, &value, sizeof value, count - 1, &err), &err,
                     "broadcast in a set");
        if (value != (uint32_t)first)
            worker_fail("broadcast in a set: %u came, not %d", value, first);
        w->engine->comm_destroy(comm);
    }
}

/* The same number may be used again when the first communicator is gone. */
static void test_again(const struct worker *w)
{
    struct error err = ERROR_INIT;
    for (int round = 0; round < 3; round++) {
        struct engine_comm *comm = worker_comm(w, 7);
        worker_check(w->engine->barrier(comm, &err), &err, "barrier");
        w->engine->comm_destroy(comm);
    }
}

static void test_what_is_refused(const struct worker *w, struct engine_comm *comm)
{
    struct error err = ERROR_INIT;
    float value = 1;
    struct engine_comm *none = NULL;
    const int wrong = w->place.size;
    if (w->engine->allreduce(comm, &value, 1, HVD_FLOAT32, HVD_AVERAGE, &err) !=
        HVD_ERR_UNSUPPORTED)
        worker_fail("the average was not refused");
    if (w->engine->comm_create(w->world, 9, &wrong, 1, &none, &err) != HVD_ERR_ARGUMENT)
        worker_fail("a rank beyond the job was not refused");
}

int main(void)
{
    struct worker w;
    worker_open(&w);
    struct engine_comm *comm = worker_comm(&w, 0);
    test_reductions(&w, comm);
    test_moves(&w, comm);
    test_control(&w, comm);
    test_sets(&w);
    test_again(&w);
    test_what_is_refused(&w, comm);
    w.engine->comm_destroy(comm);
    worker_close(&w);
    printf("rank %d of %d: all right\n", w.place.rank, w.place.size);
    return 0;
}
