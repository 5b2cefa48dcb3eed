/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PMIx client that makes a group of all ranks: mpi_group TEST [WORD]. Prints "rank R TEST
 * ok", or what went wrong, and exits 0 or 1. The list of tests is at the end.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_CID ((size_t)1234) /* the local id of rank 0 in the first group */

static pmix_proc_t me;
static uint32_t size;
static const char *word; /* the second argument */
static int unqualified;  /* as libpmix 5.0.7 needs it; enough for a single group */

#define CHECK(what)                                                              \
    do {                                                                         \
        if (!(what)) {                                                           \
            printf("rank %u failed at line %d: %s\n", me.rank, __LINE__, #what); \
            return 1;                                                            \
        }                                                                        \
    } while (0)

#define CHECK_OK(call)                                                              \
    do {                                                                            \
        pmix_status_t said = (call);                                                \
        if (said != PMIX_SUCCESS) {                                                 \
            printf("rank %u failed at line %d: %s: %s\n", me.rank, __LINE__, #call, \
                   PMIx_Error_string(said));                                        \
            return 1;                                                               \
        }                                                                           \
    } while (0)

/* Of what the ranks have put and committed, that of one rank. */
static int get_card(pmix_rank_t rank, uint32_t *value)
{
    pmix_proc_t peer;
    pmix_value_t *got = NULL;
    PMIX_LOAD_PROCID(&peer, me.nspace, rank);
    CHECK_OK(PMIx_Get(&peer, "card", NULL, 0, &got));
    CHECK(got->type == PMIX_UINT32);
    *value = got->data.uint32;
    PMIX_VALUE_RELEASE(got);
    return 0;
}

/* The local id that a rank has given for the group with this context. */
static int get_cid(pmix_rank_t rank, size_t context, size_t *cid)
{
    pmix_proc_t peer;
    pmix_info_t info[2];
    pmix_value_t *got = NULL;
    uint32_t seconds = 10;
    PMIX_LOAD_PROCID(&peer, me.nspace, rank);
    PMIX_INFO_LOAD(&info[0], PMIX_GROUP_CONTEXT_ID, &context, PMIX_SIZE);
    PMIX_INFO_SET_QUALIFIER(&info[0]);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_UINT32);
    pmix_status_t status = PMIx_Get(&peer, PMIX_GROUP_LOCAL_CID, info, 2, &got);
    /* libpmix 5.0.7 does not find what has a qualifier and is at the server. */
    if (status == PMIX_ERR_NOT_FOUND && unqualified)
        status = PMIx_Get(&peer, PMIX_GROUP_LOCAL_CID, NULL, 0, &got);
    CHECK_OK(status);
    CHECK(got->type == PMIX_SIZE);
    *cid = got->data.size;
    PMIX_VALUE_RELEASE(got);
    return 0;
}

/* A group of `count` ranks from `first` on, in which this one has the local id `cid`. */
static int construct(const char *name, pmix_rank_t first, uint32_t count, size_t cid,
                     size_t *context)
{
    pmix_proc_t *members = calloc(count, sizeof(*members));
    pmix_info_t info[2], own, *results = NULL;
    pmix_data_array_t array = {.type = PMIX_INFO, .size = 1, .array = &own};
    size_t found = 0;
    bool yes = true;
    for (uint32_t i = 0; i < count; i++)
        PMIX_LOAD_PROCID(&members[i], me.nspace, first + i);
    PMIX_INFO_LOAD(&own, PMIX_GROUP_LOCAL_CID, &cid, PMIX_SIZE);
    PMIX_INFO_LOAD(&info[0], PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_GROUP_INFO, &array, PMIX_DATA_ARRAY);
    CHECK_OK(PMIx_Group_construct(name, members, count, info, 2, &results, &found));
    *context = 0;
    for (size_t i = 0; i < found; i++)
        if (PMIX_CHECK_KEY(&results[i], PMIX_GROUP_CONTEXT_ID))
            *context = results[i].value.data.size;
    CHECK(*context > 0);
    free(members);
    return 0;
}

static int put_card(uint32_t number)
{
    pmix_value_t value = {.type = PMIX_UINT32, .data = {.uint32 = number}};
    CHECK_OK(PMIx_Put(PMIX_GLOBAL, "card", &value));
    CHECK_OK(PMIx_Commit());
    return 0;
}

/* What each has put, and its local id, without a fence. */
static int test_data(void)
{
    size_t context = 0, cid = 0;
    uint32_t card = 0;
    CHECK(put_card(me.rank * 10 + 7) == 0);
    CHECK(construct("all", 0, size, FIRST_CID + me.rank, &context) == 0);
    for (pmix_rank_t rank = 0; rank < size; rank++) {
        CHECK(get_cid(rank, context, &cid) == 0 && cid == FIRST_CID + rank);
        CHECK(get_card(rank, &card) == 0 && card == rank * 10 + 7);
    }
    CHECK_OK(PMIx_Group_destruct("all", NULL, 0));
    return 0;
}

/* It makes a group of the name that is given, and asks for what it has given itself. */
static int test_own(void)
{
    size_t context = 0, cid = 0;
    CHECK(construct(word, 0, size, FIRST_CID + me.rank, &context) == 0);
    CHECK(get_cid(me.rank, context, &cid) == 0 && cid == FIRST_CID + me.rank);
    return 0;
}

/* A rank has another local id in each of its groups, and the groups have different contexts. */
static int test_many(void)
{
    enum { GROUPS = 8 };
    size_t context[GROUPS], cid = 0;
    char name[32];
    for (size_t i = 0; i < GROUPS; i++) {
        snprintf(name, sizeof(name), "group%zu", i);
        CHECK(construct(name, 0, size, i * 100 + me.rank, &context[i]) == 0);
        for (size_t j = 0; j < i; j++)
            CHECK(context[i] != context[j]);
    }
    for (size_t i = 0; i < GROUPS; i++)
        for (pmix_rank_t rank = 0; rank < size; rank++)
            CHECK(get_cid(rank, context[i], &cid) == 0 && cid == i * 100 + rank);
    for (size_t i = 0; i < GROUPS; i++) {
        snprintf(name, sizeof(name), "group%zu", i);
        CHECK_OK(PMIx_Group_destruct(name, NULL, 0));
    }
    return 0;
}

/* Two groups of half the ranks each, at the same time. */
static int test_halves(void)
{
    size_t context = 0, cid = 0;
    uint32_t half = size / 2;
    bool low = me.rank < half;
    pmix_rank_t first = low ? 0 : half;
    uint32_t count = low ? half : size - half;
    CHECK(construct(low ? "low" : "high", first, count, FIRST_CID + me.rank, &context) == 0);
    for (pmix_rank_t rank = first; rank < first + count; rank++)
        CHECK(get_cid(rank, context, &cid) == 0 && cid == FIRST_CID + rank);
    CHECK_OK(PMIx_Group_destruct(low ? "low" : "high", NULL, 0));
    return 0;
}

/* Two groups of one name, of the even and the odd ranks. */
static int test_same(void)
{
    pmix_proc_t members[64];
    pmix_info_t wanted, *results = NULL;
    size_t count = 0, found = 0;
    bool yes = true;
    for (pmix_rank_t rank = me.rank % 2; rank < size && count < 64; rank += 2, count++)
        PMIX_LOAD_PROCID(&members[count], me.nspace, rank);
    PMIX_INFO_LOAD(&wanted, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    CHECK_OK(PMIx_Group_construct("same", members, count, &wanted, 1, &results, &found));
    CHECK_OK(PMIx_Group_destruct("same", NULL, 0));
    return 0;
}

/* What the members give needs several frames. */
static int test_large(void)
{
    enum { LENGTH = 3 << 20 };
    pmix_proc_t peer;
    size_t context = 0;
    char *text = malloc(LENGTH + 1);
    pmix_value_t value = {.type = PMIX_STRING, .data = {.string = text}}, *got = NULL;
    memset(text, 'a' + (int)(me.rank % 26), LENGTH);
    text[LENGTH] = '\0';
    CHECK_OK(PMIx_Put(PMIX_GLOBAL, "large", &value));
    CHECK_OK(PMIx_Commit());
    free(text);
    CHECK(construct("large", 0, size, FIRST_CID + me.rank, &context) == 0);
    for (pmix_rank_t rank = 0; rank < size; rank++) {
        PMIX_LOAD_PROCID(&peer, me.nspace, rank);
        CHECK_OK(PMIx_Get(&peer, "large", NULL, 0, &got));
        CHECK(got->type == PMIX_STRING && strlen(got->data.string) == LENGTH);
        CHECK(got->data.string[LENGTH - 1] == 'a' + (char)(rank % 26));
        PMIX_VALUE_RELEASE(got);
    }
    return 0;
}

/* Rank 0 dies while it waits for the last one, which comes late. */
static int test_die(void)
{
    size_t context = 0;
    CHECK(put_card(me.rank) == 0);
    if (me.rank == 0)
        alarm(1);
    if (me.rank == size - 1)
        sleep(3);
    return construct("die", 0, size, FIRST_CID + me.rank, &context);
}

/* Without a context and data, there is no need to ask the launcher. */
static int test_plain(void)
{
    pmix_proc_t all;
    pmix_info_t *results = NULL;
    size_t found = 0;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    CHECK_OK(PMIx_Group_construct("plain", &all, 1, NULL, 0, &results, &found));
    CHECK_OK(PMIx_Group_destruct("plain", NULL, 0));
    pmix_proc_t *members = calloc(size, sizeof(*members));
    for (uint32_t i = 0; i < size; i++)
        PMIX_LOAD_PROCID(&members[i], me.nspace, i);
    CHECK_OK(PMIx_Group_construct("listed", members, size, NULL, 0, &results, &found));
    CHECK_OK(PMIx_Group_destruct("listed", NULL, 0));
    free(members);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} tests[] = {{"data", test_data},   {"many", test_many}, {"halves", test_halves},
             {"plain", test_plain}, {"same", test_same}, {"large", test_large},
             {"die", test_die},     {"own", test_own}};

static int job_size(void)
{
    pmix_proc_t all;
    pmix_value_t *got = NULL;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    CHECK_OK(PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &got));
    size = got->data.uint32;
    PMIX_VALUE_RELEASE(got);
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    pmix_status_t status = PMIx_Init(&me, NULL, 0);
    if (status != PMIX_SUCCESS || job_size() != 0) {
        printf("no PMIx server: %s\n", PMIx_Error_string(status));
        return 1;
    }
    int result = 2;
    word = argc > 2 ? argv[2] : "";
    unqualified = strcmp(word, "unqualified") == 0;
    for (size_t i = 0; argc > 1 && i < sizeof(tests) / sizeof(tests[0]); i++)
        if (strcmp(tests[i].name, argv[1]) == 0)
            result = tests[i].run();
    if (result == 0)
        printf("rank %u %s ok\n", me.rank, argv[1]);
    PMIx_Finalize(NULL, 0);
    return result;
}
