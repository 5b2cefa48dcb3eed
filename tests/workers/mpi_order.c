/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PMIx client whose ranks put the same key again and again.
 *
 * mpi_order ROUNDS BYTES [PAUSE_MS]: in each round, each rank puts a new random value of up to
 * BYTES bytes under the same key. Then it fences, in turns with all ranks, with every second one,
 * and with its half of the ranks. It reads the values of some ranks of that fence, and must find
 * what these have put in this round. At the end, each rank prints "rank R sum HEX" over all
 * that it has read: the same in each run.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READS 4

static pmix_proc_t me;
static uint32_t job_size;

static void check(pmix_status_t status, const char *what, uint32_t rank, long round)
{
    if (status == PMIX_SUCCESS)
        return;
    fprintf(stderr, "rank %u, round %ld: %s of %u: %s\n", me.rank, round, what, rank,
            PMIx_Error_string(status));
    _exit(9);
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* What this rank puts in this round; all ranks know it. */
static size_t fill(char *bytes, size_t most, uint32_t rank, long round)
{
    uint64_t state = (uint64_t)rank << 32 | (uint64_t)round;
    size_t length = 1 + (size_t)(next(&state) % most);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(next(&state) >> 40);
    return length;
}

static uint32_t ask_size(void)
{
    pmix_proc_t job;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&job, me.nspace, PMIX_RANK_WILDCARD);
    check(PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value), "size", 0, 0);
    uint32_t size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return size;
}

/* The ranks of the fence of this round. */
static size_t members(pmix_proc_t *procs, long round)
{
    size_t count = 0;
    uint32_t half = job_size / 2;
    for (uint32_t rank = 0; rank < job_size; rank++) {
        if ((round % 3 == 1 && rank % 2 != me.rank % 2) ||
            (round % 3 == 2 && (rank < half) != (me.rank < half)))
            continue;
        PMIX_LOAD_PROCID(&procs[count], me.nspace, rank);
        count++;
    }
    return count;
}

static uint64_t read_one(const pmix_proc_t *peer, char *bytes, size_t most, long round)
{
    pmix_value_t *value = NULL;
    uint64_t sum = 0;
    size_t length = fill(bytes, most, peer->rank, round);
    check(PMIx_Get(peer, "card", NULL, 0, &value), "get", peer->rank, round);
    bool right = value->type == PMIX_BYTE_OBJECT && value->data.bo.size == length &&
                 memcmp(value->data.bo.bytes, bytes, length) == 0;
    check(right ? PMIX_SUCCESS : PMIX_ERROR, "value", peer->rank, round);
    for (size_t i = 0; i < length; i++)
        sum = sum * 31 + (unsigned char)value->data.bo.bytes[i];
    PMIX_VALUE_RELEASE(value);
    return sum;
}

static uint64_t one_round(pmix_proc_t *procs, char *bytes, size_t most, long round)
{
    bool yes = true;
    pmix_info_t collect;
    uint64_t sum = 0, state = (uint64_t)me.rank * 977 + (uint64_t)round;
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    value.data.bo.bytes = bytes;
    value.data.bo.size = fill(bytes, most, me.rank, round);
    check(PMIx_Put(PMIX_GLOBAL, "card", &value), "put", me.rank, round);
    check(PMIx_Commit(), "commit", me.rank, round);
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    size_t count = members(procs, round);
    check(PMIx_Fence(procs, count, &collect, 1), "fence", me.rank, round);
    for (int i = 0; i < READS; i++)
        sum = sum * 31 + read_one(&procs[next(&state) % count], bytes, most, round);
    /* nobody puts anew before all have read */
    check(PMIx_Fence(procs, count, NULL, 0), "barrier", me.rank, round);
    return sum;
}

int main(int argc, char **argv)
{
    long rounds = argc > 2 ? strtol(argv[1], NULL, 10) : 1;
    size_t most = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 4096;
    long pause_ms = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    uint64_t sum = 0;
    check(PMIx_Init(&me, NULL, 0), "init", 0, 0);
    job_size = ask_size();
    pmix_proc_t *procs = calloc(job_size, sizeof(*procs));
    char *bytes = calloc(most, 1);
    for (long round = 0; round < rounds; round++) {
        sum = sum * 31 + one_round(procs, bytes, most, round);
        if (me.rank == 0)
            fprintf(stderr, "round %ld\n", round);
        usleep((useconds_t)pause_ms * 1000);
    }
    printf("rank %u sum %016llx\n", me.rank, (unsigned long long)sum);
    fflush(stdout);
    PMIx_Finalize(NULL, 0);
    free(procs);
    free(bytes);
    return 0;
}
