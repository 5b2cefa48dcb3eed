/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PMIx client that times fences, for benchmarks.
 *
 * mpi_fence ROUNDS [BYTES [random [all]]]: each rank puts a new value of 64 bytes and fences with
 * all others, ROUNDS times, after one round that does not count; at the end it reads the last value
 * of the last rank, or with "all" of every rank. Rank 0 prints "fence SECONDS", for one round.
 * mpi_fence stay [BYTES [random [all]]]: one round, "there", and then it waits to be ended. With
 * "random", no value can be compressed.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VALUE_BYTES_MAX 65536

static pmix_proc_t me;
static size_t value_bytes = 64;
static bool is_random;

static void check(pmix_status_t status, const char *what)
{
    if (status == PMIX_SUCCESS)
        return;
    fprintf(stderr, "rank %u: %s: %s\n", me.rank, what, PMIx_Error_string(status));
    _exit(9);
}

static void name(char *key, size_t room, long round)
{
    snprintf(key, room, "card.%ld", round);
}

static void fill(char *bytes, pmix_rank_t rank, long round)
{
    uint64_t state = ((uint64_t)rank << 32 | (uint64_t)round) * 2654435769u + 1;
    memset(bytes, (int)(round % 100) + 1, value_bytes);
    for (size_t i = 0; i < value_bytes && is_random; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (char)(state >> 32);
    }
}

static void one_round(long round)
{
    char key[32];
    char bytes[VALUE_BYTES_MAX];
    bool yes = true;
    pmix_info_t collect;
    pmix_proc_t all;
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT,
                          .data = {.bo = {.bytes = bytes, .size = value_bytes}}};
    name(key, sizeof(key), round);
    fill(bytes, me.rank, round);
    check(PMIx_Put(PMIX_GLOBAL, key, &value), "put");
    check(PMIx_Commit(), "commit");
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    check(PMIx_Fence(&all, 1, &collect, 1), "fence");
}

static uint32_t job_size(void)
{
    pmix_proc_t job;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&job, me.nspace, PMIX_RANK_WILDCARD);
    check(PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value), "size");
    uint32_t size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return size;
}

static void look_at(pmix_rank_t rank, long round)
{
    char key[32];
    char bytes[VALUE_BYTES_MAX];
    pmix_proc_t peer;
    pmix_value_t *value = NULL;
    name(key, sizeof(key), round);
    PMIX_LOAD_PROCID(&peer, me.nspace, rank);
    check(PMIx_Get(&peer, key, NULL, 0, &value), "get");
    fill(bytes, peer.rank, round);
    bool right = value->type == PMIX_BYTE_OBJECT && value->data.bo.size == value_bytes &&
                 memcmp(value->data.bo.bytes, bytes, value_bytes) == 0;
    check(right ? PMIX_SUCCESS : PMIX_ERROR, "the value of another rank");
    PMIX_VALUE_RELEASE(value);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 0; /* "stay": 0 */
    long bytes = argc > 2 ? strtol(argv[2], NULL, 10) : 64;
    check(bytes > 0 && bytes <= VALUE_BYTES_MAX ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM, "BYTES");
    value_bytes = (size_t)bytes;
    is_random = argc > 3;
    check(PMIx_Init(&me, NULL, 0), "init");
    one_round(0);
    double began = now();
    for (long round = 1; round <= rounds; round++)
        one_round(round);
    double took = now() - began;
    pmix_rank_t size = job_size();
    for (pmix_rank_t rank = argc > 4 ? 0 : size - 1; rank < size; rank++)
        look_at(rank, rounds);
    if (rounds == 0) {
        puts("there");
        fflush(stdout);
        for (;;)
            pause();
    }
    if (me.rank == 0)
        printf("fence %.9f\n", took / (double)rounds);
    PMIx_Finalize(NULL, 0);
    return 0;
}
