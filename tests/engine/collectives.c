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
    worker_check(w->engine->alltoallv(comm, in, send, out, receive, 0, &err), &err, "alltoallv");
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
        worker_check(worker_barrier(w, comm, &err), &err, "barrier");
    }
}

static void try_messages(const struct worker *w, struct engine_comm *comm, size_t count)
{
    struct error err = ERROR_INIT;
    const struct message_set set = worker_set(w, comm);
    unsigned char *own AUTO_FREE = mem_alloc(count);
    for (size_t i = 0; i < count; i++)
        own[i] = byte_of(w->place.rank, 9, i);
    worker_check(messages_from_root(&set, own, count, &err), &err, "messages_from_root");
    for (size_t i = 0; i < count; i++)
        if (own[i] != byte_of(0, 9, i))
            worker_fail("messages_from_root: byte %zu is wrong", i);
    for (int other = 0; other <= w->place.size; other++) { /* the last one is not a rank */
        bool same = false, differs = other < w->place.size && w->place.size > 1 && count > 0;
        if (count > 0)
            own[count - 1] ^= other == w->place.rank;
        worker_check(messages_compare(&set, own, count, &same, &err), &err, "messages_compare");
        if (same == differs)
            worker_fail("messages_compare of %zu bytes, rank %d has others: %d", count, other,
                        same);
        if (count > 0)
            own[count - 1] ^= other == w->place.rank;
    }
}

/* The ranks from `first` on have one. */
static void try_problems(const struct worker *w, struct engine_comm *comm, int first)
{
    struct error err = ERROR_INIT;
    const struct message_set set = worker_set(w, comm);
    char own[2 * ERROR_TEXT_MAX] = "", long_one[2 * ERROR_TEXT_MAX], expected[ERROR_TEXT_MAX] = "";
    int failed = -2, wanted = first < w->place.size ? first : -1;
    if (w->place.rank >= first)
        snprintf(own, sizeof own, "%d %*d", w->place.rank, ERROR_TEXT_MAX, 1);
    snprintf(long_one, sizeof long_one, "%d %*d", wanted, ERROR_TEXT_MAX, 1);
    if (wanted >= 0)
        memcpy(expected, long_one, sizeof expected - 1); /* as much as an error holds */
    worker_check(messages_agree(&set, own, &failed, &err), &err, "messages_agree");
    if (failed != wanted || strcmp(err.text, expected) != 0)
        worker_fail("messages_agree: rank %d, not %d: '%s'", failed, wanted, err.text);
}

static void test_control(const struct worker *w, struct engine_comm *comm)
{
    static const size_t lengths[] = {0, 1, 247, 5000, 100000};
    for (size_t i = 0; i < COUNT(lengths); i++)
        try_messages(w, comm, lengths[i]);
    for (int first = 0; first <= w->place.size; first++)
        try_problems(w, comm, first);
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
        worker_check(worker_barrier(w, comm, &err), &err, "barrier");
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
