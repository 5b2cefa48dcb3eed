/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PMIx client without MPI: mpi_pmix TEST [NODES] runs one conversation with the server (the list
 * is at the end) and prints "rank R TEST ok", or what went wrong, and exits 0 or 1. The ranks are
 * on NODES nodes (default 1), the same number on each.
 */
#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pmix_proc_t me;
static uint32_t size, nodes = 1;

#define CHECK(what)                                                              \
    do {                                                                         \
        if (!(what)) {                                                           \
            printf("rank %u failed at line %d: %s\n", me.rank, __LINE__, #what); \
            return 1;                                                            \
        }                                                                        \
    } while (0)

static int fence(void)
{
    pmix_proc_t all;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    return PMIx_Fence(&all, 1, NULL, 0);
}

static int publish(const char *key, const char *value, pmix_data_range_t range,
                   pmix_persistence_t keep)
{
    pmix_info_t info[3];
    PMIX_INFO_LOAD(&info[0], key, value, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_RANGE, &range, PMIX_DATA_RANGE);
    PMIX_INFO_LOAD(&info[2], PMIX_PERSISTENCE, &keep, PMIX_PERSIST);
    return PMIx_Publish(info, 3);
}

/* `wait` < 0: no waiting. */
static int lookup(const char *key, pmix_data_range_t range, int wait, int timeout, char *value)
{
    pmix_pdata_t data;
    pmix_info_t info[3];
    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, key);
    PMIX_INFO_LOAD(&info[0], PMIX_RANGE, &range, PMIX_DATA_RANGE);
    PMIX_INFO_LOAD(&info[1], PMIX_WAIT, &wait, PMIX_INT);
    PMIX_INFO_LOAD(&info[2], PMIX_TIMEOUT, &timeout, PMIX_INT);
    pmix_status_t status = PMIx_Lookup(&data, 1, info, wait < 0 ? 1 : timeout > 0 ? 3 : 2);
    if (status == PMIX_SUCCESS && data.value.type == PMIX_STRING)
        snprintf(value, 64, "%s", data.value.data.string);
    return status;
}

/* Rank 1 waits for what rank 0 publishes later; keys are single; unpublished ones are gone. A range
 * that does not exist publishes nothing, and hides nothing: Open MPI 5 looks up with any number. */
static int test_publish(void)
{
    char value[64] = "";
    char *keys[] = {(char *)"late", NULL};
    if (me.rank == 1)
        CHECK(lookup("late", PMIX_RANGE_SESSION, 1, 0, value) == PMIX_SUCCESS &&
              strcmp(value, "bird") == 0 && lookup("late", 77, -1, 0, value) == PMIX_SUCCESS);
    if (me.rank == 0) {
        CHECK(publish("nowhere", "z", 77, PMIX_PERSIST_SESSION) == PMIX_ERR_NOT_SUPPORTED);
        struct timespec moment = {.tv_nsec = 100000000};
        nanosleep(&moment, NULL);
        CHECK(publish("late", "bird", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION) == PMIX_SUCCESS);
        CHECK(publish("late", "twice", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION) ==
              PMIX_ERR_DUPLICATE_KEY);
        CHECK(publish("mine", "x", PMIX_RANGE_PROC_LOCAL, PMIX_PERSIST_SESSION) == PMIX_SUCCESS);
        CHECK(publish("once", "y", PMIX_RANGE_NAMESPACE, PMIX_PERSIST_FIRST_READ) == PMIX_SUCCESS);
    }
    CHECK(fence() == PMIX_SUCCESS);
    if (me.rank == 1) {
        CHECK(lookup("mine", PMIX_RANGE_SESSION, -1, 0, value) == PMIX_ERR_NOT_FOUND);
        CHECK(lookup("once", PMIX_RANGE_SESSION, -1, 0, value) == PMIX_SUCCESS);
        CHECK(lookup("once", PMIX_RANGE_SESSION, -1, 0, value) == PMIX_ERR_NOT_FOUND);
    }
    CHECK(fence() == PMIX_SUCCESS);
    if (me.rank == 0)
        CHECK(PMIx_Unpublish(keys, NULL, 0) == PMIX_SUCCESS);
    CHECK(fence() == PMIX_SUCCESS);
    CHECK(lookup("late", PMIX_RANGE_SESSION, -1, 0, value) == PMIX_ERR_NOT_FOUND);
    return 0;
}

static int test_timeout(void)
{
    char value[64] = "";
    if (me.rank == 0)
        CHECK(lookup("never", PMIX_RANGE_SESSION, 1, 1, value) == PMIX_ERR_TIMEOUT);
    return 0;
}

/* Put, commit, fence with data, get. */
static int test_modex(void)
{
    pmix_value_t value = {.type = PMIX_UINT32, .data = {.uint32 = me.rank * 10 + 7}};
    bool yes = true;
    pmix_info_t collect;
    pmix_proc_t peer;
    pmix_value_t *got = NULL;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    CHECK(PMIx_Put(PMIX_GLOBAL, "card", &value) == PMIX_SUCCESS && PMIx_Commit() == PMIX_SUCCESS);
    PMIX_LOAD_PROCID(&peer, me.nspace, PMIX_RANK_WILDCARD);
    CHECK(PMIx_Fence(&peer, 1, &collect, 1) == PMIX_SUCCESS);
    PMIX_LOAD_PROCID(&peer, me.nspace, (me.rank + 1) % size);
    CHECK(PMIx_Get(&peer, "card", NULL, 0, &got) == PMIX_SUCCESS);
    CHECK(got->type == PMIX_UINT32 && got->data.uint32 == peer.rank * 10 + 7);
    PMIX_VALUE_RELEASE(got);
    return 0;
}

static int put_and_fence(const char *key, uint32_t number)
{
    pmix_value_t value = {.type = PMIX_UINT32, .data = {.uint32 = number}};
    bool yes = true;
    pmix_info_t collect;
    pmix_proc_t all;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    CHECK(PMIx_Put(PMIX_GLOBAL, key, &value) == PMIX_SUCCESS && PMIx_Commit() == PMIX_SUCCESS);
    CHECK(PMIx_Fence(&all, 1, &collect, 1) == PMIX_SUCCESS);
    return 0;
}

/* Every rank reads the value of every other one. */
static int expect_all(const char *key, uint32_t more)
{
    for (pmix_rank_t rank = 0; rank < size; rank++) {
        pmix_proc_t peer;
        pmix_value_t *got = NULL;
        PMIX_LOAD_PROCID(&peer, me.nspace, rank);
        CHECK(PMIx_Get(&peer, key, NULL, 0, &got) == PMIX_SUCCESS);
        CHECK(got->type == PMIX_UINT32 && got->data.uint32 == rank + more);
        PMIX_VALUE_RELEASE(got);
    }
    return 0;
}

/* Two fences with data, and a key for each. */
static int test_rounds(void)
{
    CHECK(put_and_fence("one", me.rank + 10) == 0 && expect_all("one", 10) == 0);
    CHECK(put_and_fence("two", me.rank + 20) == 0 && expect_all("two", 20) == 0);
    return expect_all("one", 10);
}

/* The same key again, with another value. */
static int test_change(void)
{
    CHECK(put_and_fence("card", me.rank + 10) == 0 && expect_all("card", 10) == 0);
    CHECK(fence() == PMIX_SUCCESS); /* all have read it */
    CHECK(put_and_fence("card", me.rank + 20) == 0 && expect_all("card", 20) == 0);
    return 0;
}

/* The last rank leaves after the fence; only then the others ask for its value. */
static int test_gone(void)
{
    char value[64];
    pmix_status_t alive = PMIX_SUCCESS;
    if (me.rank == size - 1)
        CHECK(publish("alive", "x", PMIX_RANGE_SESSION, PMIX_PERSIST_PROC) == PMIX_SUCCESS);
    CHECK(put_and_fence("card", me.rank + 10) == 0);
    if (me.rank == size - 1)
        return 0;
    struct timespec moment = {.tv_nsec = 10000000};
    for (int i = 0; i < 3000 && alive == PMIX_SUCCESS; i++) {
        nanosleep(&moment, NULL);
        alive = lookup("alive", PMIX_RANGE_SESSION, -1, 0, value);
    }
    CHECK(alive == PMIX_ERR_NOT_FOUND);
    return expect_all("card", 10);
}

/* The rank leaves and comes back again and again, as with sessions of MPI. In turn, one leaves
 * late: the others wait in their next fence for it by then. Nobody gets past it without its new
 * value. */
static int test_again(void)
{
    for (uint32_t round = 0; round < 12; round++) {
        struct timespec late = {.tv_nsec = round % size == me.rank ? 300000000 : 0};
        CHECK(put_and_fence("card", me.rank + 100 * round) == 0);
        CHECK(expect_all("card", 100 * round) == 0 && fence() == PMIX_SUCCESS);
        nanosleep(&late, NULL);
        CHECK(PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
        CHECK(PMIx_Init(&me, NULL, 0) == PMIX_SUCCESS);
    }
    return 0;
}

/* Much data: 3 MiB from each rank, and as much that is published. */
static int test_large(void)
{
    size_t length = (size_t)3 << 20;
    char *bytes = malloc(length + 1);
    char *found = malloc(length + 1);
    CHECK(bytes != NULL && found != NULL);
    memset(bytes, 'a' + (int)me.rank % 26, length);
    bytes[length] = '\0';
    pmix_value_t value = {.type = PMIX_STRING, .data = {.string = bytes}};
    bool yes = true;
    pmix_info_t info;
    pmix_proc_t peer;
    pmix_value_t *got = NULL;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    CHECK(PMIx_Put(PMIX_GLOBAL, "card", &value) == PMIX_SUCCESS && PMIx_Commit() == PMIX_SUCCESS);
    PMIX_LOAD_PROCID(&peer, me.nspace, PMIX_RANK_WILDCARD);
    CHECK(PMIx_Fence(&peer, 1, &info, 1) == PMIX_SUCCESS);
    PMIX_LOAD_PROCID(&peer, me.nspace, size - 1 - me.rank);
    CHECK(PMIx_Get(&peer, "card", NULL, 0, &got) == PMIX_SUCCESS);
    memset(bytes, 'a' + (int)peer.rank % 26, length);
    CHECK(got->type == PMIX_STRING && strcmp(got->data.string, bytes) == 0);
    if (me.rank == 0)
        CHECK(publish("large", bytes, PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION) == PMIX_SUCCESS);
    CHECK(fence() == PMIX_SUCCESS);
    pmix_pdata_t data;
    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, "large");
    CHECK(PMIx_Lookup(&data, 1, NULL, 0) == PMIX_SUCCESS && data.value.type == PMIX_STRING);
    CHECK(strlen(data.value.data.string) == length);
    return 0;
}

/* Fenced without data: the card of a rank on another node has to be fetched. */
static int test_fetch(void)
{
    pmix_value_t value = {.type = PMIX_UINT32, .data = {.uint32 = me.rank * 10 + 7}};
    CHECK(PMIx_Put(PMIX_GLOBAL, "card", &value) == PMIX_SUCCESS && PMIx_Commit() == PMIX_SUCCESS);
    CHECK(fence() == PMIX_SUCCESS);
    for (pmix_rank_t rank = 0; rank < size; rank++) {
        pmix_proc_t peer;
        pmix_value_t *got = NULL;
        PMIX_LOAD_PROCID(&peer, me.nspace, rank);
        CHECK(PMIx_Get(&peer, "card", NULL, 0, &got) == PMIX_SUCCESS);
        CHECK(got->type == PMIX_UINT32 && got->data.uint32 == rank * 10 + 7);
        PMIX_VALUE_RELEASE(got);
    }
    pmix_proc_t peer;
    pmix_value_t *got = NULL;
    PMIX_LOAD_PROCID(&peer, me.nspace, size - 1 - me.rank);
    CHECK(PMIx_Get(&peer, "no-such-card", NULL, 0, &got) != PMIX_SUCCESS);
    return 0;
}

/* Fences of some ranks, which are on different nodes, beside those of all. */
static int test_some(void)
{
    pmix_proc_t some[2];
    PMIX_LOAD_PROCID(&some[0], me.nspace, 0);
    PMIX_LOAD_PROCID(&some[1], me.nspace, size - 1);
    for (int i = 0; i < 20; i++) {
        if (me.rank == 0 || me.rank == size - 1)
            CHECK(PMIx_Fence(some, 2, NULL, 0) == PMIX_SUCCESS);
        CHECK(fence() == PMIX_SUCCESS);
    }
    return 0;
}

static int number_of(pmix_rank_t rank, const char *key, uint32_t *out)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&proc, me.nspace, rank);
    if (PMIx_Get(&proc, key, NULL, 0, &value) != PMIX_SUCCESS)
        return -1;
    *out = value->type == PMIX_UINT16      ? value->data.uint16
           : value->type == PMIX_PROC_RANK ? value->data.rank
                                           : value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return 0;
}

static int host_of(pmix_rank_t rank, char *host, size_t room)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&proc, me.nspace, rank);
    if (PMIx_Get(&proc, PMIX_HOSTNAME, NULL, 0, &value) != PMIX_SUCCESS)
        return -1;
    snprintf(host, room, "%s", value->data.string);
    PMIX_VALUE_RELEASE(value);
    return 0;
}

/* What the server must know in advance, of this node and of the others. (libpmix 4.2 gives the
 * number of a node to the ranks on it alone.) */
static int test_keys(void)
{
    uint32_t value = 99;
    uint32_t each = size / nodes;
    char mine[256];
    char host[256];
    CHECK(number_of(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE, &value) == 0 && value == size);
    CHECK(number_of(PMIX_RANK_WILDCARD, PMIX_NUM_NODES, &value) == 0 && value == nodes);
    CHECK(number_of(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, &value) == 0 && value == each);
    CHECK(number_of(PMIX_RANK_WILDCARD, PMIX_JOB_NUM_APPS, &value) == 0 && value >= 1);
    CHECK(number_of(me.rank, PMIX_NODEID, &value) == 0 && value == me.rank / each);
    CHECK(host_of(me.rank, mine, sizeof(mine)) == 0);
    for (pmix_rank_t rank = 0; rank < size; rank++) {
        CHECK(number_of(rank, PMIX_LOCAL_RANK, &value) == 0 && value == rank % each);
        CHECK(number_of(rank, PMIX_NODE_RANK, &value) == 0 && value == rank % each);
        CHECK(number_of(rank, PMIX_APPNUM, &value) == 0 && value < 16);
        CHECK(host_of(rank, host, sizeof(host)) == 0);
        CHECK((strcmp(host, mine) == 0) == (rank / each == me.rank / each));
    }
    return 0;
}

static int test_query(void)
{
    pmix_info_t *results = NULL;
    size_t count = 0;
    pmix_query_t query;
    PMIX_QUERY_CONSTRUCT(&query);
    char *table_keys[] = {(char *)PMIX_QUERY_PROC_TABLE, NULL};
    query.keys = table_keys;
    PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_NSPACE, me.nspace, PMIX_STRING);
    CHECK(PMIx_Query_info(&query, 1, &results, &count) == PMIX_SUCCESS && count == 1);
    CHECK(results[0].value.type == PMIX_DATA_ARRAY);
    pmix_data_array_t *array = results[0].value.data.darray;
    pmix_proc_info_t *table = array->array;
    CHECK(array->type == PMIX_PROC_INFO && array->size == size);
    CHECK(table[size - 1 - me.rank].proc.rank == size - 1 - me.rank);
    CHECK(table[me.rank].pid == getpid() && table[me.rank].state == PMIX_PROC_STATE_CONNECTED);
    CHECK(strstr(table[me.rank].executable_name, "mpi_pmix") != NULL);
    pmix_query_t unknown;
    PMIX_QUERY_CONSTRUCT(&unknown);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_NSPACE, "other", PMIX_STRING);
    CHECK(PMIx_Query_info(&query, 1, &results, &count) == PMIX_ERR_NOT_FOUND);
    char *unknown_keys[] = {(char *)PMIX_QUERY_QUEUE_LIST, NULL};
    unknown.keys = unknown_keys;
    CHECK(PMIx_Query_info(&unknown, 1, &results, &count) != PMIX_SUCCESS);
    return 0;
}

static int test_group(void)
{
    pmix_proc_t members[2];
    pmix_info_t wanted;
    bool yes = true;
    pmix_info_t *results = NULL;
    size_t count = 0;
    if (me.rank != 0 && me.rank != (nodes > 1 ? size - 1 : 1))
        return 0;
    PMIX_LOAD_PROCID(&members[0], me.nspace, 0);
    PMIX_LOAD_PROCID(&members[1], me.nspace, nodes > 1 ? size - 1 : 1);
    PMIX_INFO_LOAD(&wanted, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    CHECK(PMIx_Group_construct("pair", members, 2, &wanted, 1, &results, &count) == PMIX_SUCCESS);
    size_t context = 0;
    for (size_t i = 0; i < count; i++)
        if (PMIX_CHECK_KEY(&results[i], PMIX_GROUP_CONTEXT_ID))
            context = results[i].value.data.size;
    CHECK(context > 0);
    CHECK(PMIx_Group_destruct("pair", NULL, 0) == PMIX_SUCCESS);
    return 0;
}

static int test_connect(void)
{
    pmix_proc_t all;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    CHECK(PMIx_Connect(&all, 1, NULL, 0) == PMIX_SUCCESS);
    CHECK(PMIx_Disconnect(&all, 1, NULL, 0) == PMIX_SUCCESS);
    return 0;
}

/* What is only told is accepted; what acts, and hvdrun cannot do, is not, beside it either. */
static int test_told(void)
{
    pmix_info_t directives[2], method;
    pmix_data_array_t methods = {.type = PMIX_INFO, .size = 1, .array = &method};
    bool yes = true;
    int none = 9999;
    PMIX_INFO_LOAD(&method, PMIX_JOB_CTRL_CHECKPOINT_EVENT, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&directives[0], PMIX_JOB_CTRL_PREEMPTIBLE, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&directives[1], PMIX_JOB_CTRL_CHECKPOINT_METHOD, &methods, PMIX_DATA_ARRAY);
    CHECK(PMIx_Job_control(NULL, 0, directives, 1, NULL, NULL) == PMIX_SUCCESS);
    CHECK(PMIx_Job_control(NULL, 0, directives, 2, NULL, NULL) == PMIX_SUCCESS);
    PMIX_INFO_LOAD(&directives[1], PMIX_JOB_CTRL_CHECKPOINT, "now", PMIX_STRING);
    CHECK(PMIx_Job_control(NULL, 0, directives, 2, NULL, NULL) == PMIX_ERR_NOT_SUPPORTED);
    PMIX_INFO_LOAD(&directives[1], PMIX_JOB_CTRL_SIGNAL, &none, PMIX_INT);
    CHECK(PMIx_Job_control(NULL, 0, directives, 2, NULL, NULL) == PMIX_ERR_BAD_PARAM);
    PMIX_INFO_LOAD(&directives[1], "no.such.directive", &yes, PMIX_BOOL);
    CHECK(PMIx_Job_control(NULL, 0, directives, 2, NULL, NULL) == PMIX_ERR_NOT_SUPPORTED);
    CHECK(PMIx_Job_control(NULL, 0, &directives[1], 1, NULL, NULL) == PMIX_ERR_NOT_SUPPORTED);
    return 0;
}

/* Rank 0 asks the launcher to signal rank 1 (SIGUSR1 = 10); a restart is refused. */
static int test_control(void)
{
    pmix_info_t directive;
    pmix_proc_t target;
    int number = 10;
    if (me.rank != 0) {
        sleep(nodes > 1 ? 20 : 0); /* from another node it takes a moment */
        return nodes > 1;
    }
    PMIX_LOAD_PROCID(&target, me.nspace, 1);
    PMIX_INFO_LOAD(&directive, PMIX_JOB_CTRL_SIGNAL, &number, PMIX_INT);
    CHECK(PMIx_Job_control(&target, 1, &directive, 1, NULL, NULL) == PMIX_SUCCESS);
    PMIX_INFO_LOAD(&directive, PMIX_JOB_CTRL_RESTART, "x", PMIX_STRING);
    CHECK(PMIx_Job_control(&target, 1, &directive, 1, NULL, NULL) == PMIX_ERR_NOT_SUPPORTED);
    return 0;
}

static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
    signalled = number;
}

/* Tells rank 0 of the first world that a signal may come, and waits for it. */
static int test_called(void)
{
    char key[PMIX_MAX_NSLEN + 16];
    struct timespec moment = {.tv_nsec = 10000000};
    signal(SIGUSR1, on_signal);
    snprintf(key, sizeof(key), "%s.%u", me.nspace, me.rank);
    CHECK(publish(key, "waits", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION) == PMIX_SUCCESS);
    for (int i = 0; i < 3000 && !signalled; i++)
        nanosleep(&moment, NULL);
    CHECK(signalled);
    return 0;
}

static int waits(const char *nspace, int rank)
{
    char key[PMIX_MAX_NSLEN + 16], value[64];
    snprintf(key, sizeof(key), "%s.%d", nspace, rank);
    return lookup(key, PMIX_RANGE_SESSION, 1, 0, value) == PMIX_SUCCESS;
}

/* Rank 0 of two spawns two others, and asks the launcher to signal every rank of both worlds. */
static int test_every(void)
{
    pmix_app_t app;
    pmix_nspace_t child;
    pmix_info_t directive;
    int number = SIGUSR1;
    char program[4096] = "", *argv[] = {program, (char *)"called", NULL};
    if (me.rank != 0)
        return test_called();
    signal(SIGUSR1, on_signal);
    CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = program;
    app.argv = argv;
    app.maxprocs = 2;
    CHECK(PMIx_Spawn(NULL, 0, &app, 0, child) != PMIX_SUCCESS);
    CHECK(PMIx_Spawn(NULL, 0, &app, 1, child) == PMIX_SUCCESS);
    CHECK(waits(me.nspace, 1) && waits(child, 0) && waits(child, 1));
    PMIX_INFO_LOAD(&directive, PMIX_JOB_CTRL_SIGNAL, &number, PMIX_INT);
    CHECK(PMIx_Job_control(NULL, 0, &directive, 1, NULL, NULL) == PMIX_SUCCESS);
    return 0;
}

static int test_log(void)
{
    pmix_info_t text;
    PMIX_INFO_LOAD(&text, PMIX_LOG_STDERR, "first line\nsecond line\n", PMIX_STRING);
    if (me.rank == 0)
        CHECK(PMIx_Log(&text, 1, NULL, 0) == PMIX_SUCCESS);
    return 0;
}

static int test_spawn(void)
{
    pmix_app_t app;
    pmix_nspace_t child;
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("true");
    app.maxprocs = 1;
    CHECK(PMIx_Spawn(NULL, 0, &app, 1, child) == PMIX_ERR_NOT_SUPPORTED);
    return 0;
}

static volatile pmix_status_t heard;
static volatile int heard_from = -1;

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t *results, size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *done_data)
{
    (void)id, (void)source, (void)results, (void)nresults;
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC))
            heard_from = (int)info[i].value.data.proc->rank;
    heard = status;
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_data);
}

/* Rank 1 ends; the others, who registered for it, are told. */
static int expect_event(pmix_status_t code, int status)
{
    CHECK(PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL) >= 0);
    CHECK(fence() == PMIX_SUCCESS);
    if (me.rank == 1)
        _exit(status);
    struct timespec moment = {.tv_nsec = 10000000};
    for (int i = 0; i < 500 && heard == 0; i++)
        nanosleep(&moment, NULL);
    CHECK(heard == code && heard_from == 1);
    return 0;
}

static int test_event(void)
{
    return expect_event(PMIX_ERR_EXIT_NONZERO_TERM, 9);
}

static int test_leave(void)
{
    return expect_event(PMIX_ERR_PROC_TERM_WO_SYNC, 0);
}

/* Rank 0 tells everybody, on all nodes; what it says for its node stays there. */
static int test_notify(void)
{
    pmix_status_t far = PMIX_EXTERNAL_ERR_BASE - 1;
    pmix_status_t near = PMIX_EXTERNAL_ERR_BASE - 2;
    pmix_status_t codes[] = {far, near};
    CHECK(PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL) >= 0);
    CHECK(fence() == PMIX_SUCCESS);
    if (me.rank == 0) {
        pmix_info_t info;
        PMIX_INFO_LOAD(&info, PMIX_EVENT_AFFECTED_PROC, &me, PMIX_PROC);
        CHECK(PMIx_Notify_event(near, &me, PMIX_RANGE_LOCAL, NULL, 0, NULL, NULL) >= 0);
        CHECK(fence() == PMIX_SUCCESS);
        CHECK(PMIx_Notify_event(far, &me, PMIX_RANGE_SESSION, &info, 1, NULL, NULL) >= 0);
        CHECK(fence() == PMIX_SUCCESS);
        return 0;
    }
    CHECK(fence() == PMIX_SUCCESS);
    if (me.rank >= size / nodes)
        CHECK(heard == 0);
    struct timespec moment = {.tv_nsec = 10000000};
    for (int i = 0; i < 500 && heard != far; i++)
        nanosleep(&moment, NULL);
    CHECK(heard == far && heard_from == 0);
    CHECK(fence() == PMIX_SUCCESS);
    return 0;
}

static int test_abort(void)
{
    if (me.rank == 1) {
        PMIx_Abort(5, "no more coal", NULL, 0);
        _exit(5);
    }
    return 0;
}

/* The last rank publishes nothing, and leaves: who asks for its data is told so, and before that,
 * when the time is over for which it wanted to wait. */
static int test_silent(void)
{
    char value[64];
    pmix_proc_t last;
    pmix_value_t *got = NULL;
    pmix_info_t limit;
    int second = 1;
    PMIX_LOAD_PROCID(&last, me.nspace, size - 1);
    PMIX_INFO_LOAD(&limit, PMIX_TIMEOUT, &second, PMIX_INT);
    if (me.rank == size - 1)
        CHECK(lookup("leave now", PMIX_RANGE_SESSION, 1, 0, value) == PMIX_SUCCESS);
    if (me.rank > 0)
        return 0;
    CHECK(PMIx_Get(&last, "never", &limit, 1, &got) == PMIX_ERR_TIMEOUT);
    CHECK(publish("leave now", "x", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION) == PMIX_SUCCESS);
    CHECK(PMIx_Get(&last, "never", NULL, 0, &got) == PMIX_ERR_NOT_FOUND);
    CHECK(PMIx_Get(&last, "never either", NULL, 0, &got) == PMIX_ERR_NOT_FOUND);
    return 0;
}

static volatile sig_atomic_t came;
static pmix_status_t came_with;

static void on_value(pmix_status_t status, pmix_value_t *value, void *context)
{
    (void)value, (void)context;
    came_with = status;
    came = 1;
}

/* Rank 0 has asked when both are out of their fences: so it was first. */
static pmix_status_t get_in_turn(const pmix_proc_t *peer, const pmix_info_t *limit, size_t limits)
{
    pmix_proc_t both[2];
    pmix_value_t *got = NULL;
    PMIX_LOAD_PROCID(&both[0], me.nspace, 0);
    PMIX_LOAD_PROCID(&both[1], me.nspace, 1);
    came = 0;
    if (me.rank == 0)
        CHECK(PMIx_Get_nb(peer, "card", limit, limits, on_value, NULL) == PMIX_SUCCESS);
    for (int i = 0; i < 2; i++) /* its question may go out behind the first one */
        CHECK(PMIx_Fence(both, 2, NULL, 0) == PMIX_SUCCESS);
    if (me.rank == 1)
        return PMIx_Get(peer, "card", limit, limits, &got);
    struct timespec moment = {.tv_nsec = 10000000};
    while (!came)
        nanosleep(&moment, NULL);
    return came_with;
}

/* Two ranks of one node wait for a third, one of them for a second only. libpmix asks once for
 * both: the limit of the first one counts for both, and that of the second one for none. */
static int wait_for(pmix_rank_t rank, int limits, const char *key)
{
    pmix_proc_t peer;
    pmix_value_t *got = NULL;
    pmix_info_t limit;
    int second = 1;
    PMIX_LOAD_PROCID(&peer, me.nspace, rank);
    PMIX_INFO_LOAD(&limit, PMIX_TIMEOUT, &second, PMIX_INT);
    pmix_status_t status = get_in_turn(&peer, &limit, me.rank == 0 ? limits : 1 - limits);
    if (limits == 0)
        CHECK(status == PMIX_SUCCESS);
    else if (me.rank == 0)
        CHECK(status == PMIX_ERR_TIMEOUT &&
              publish(key, "x", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION) == PMIX_SUCCESS);
    else /* its question may have come too late for that */
        CHECK(status == PMIX_ERR_TIMEOUT || status == PMIX_SUCCESS);
    CHECK(PMIx_Get(&peer, "card", NULL, 0, &got) == PMIX_SUCCESS && got->data.uint32 == rank);
    PMIX_VALUE_RELEASE(got);
    return 0;
}

static int test_patience(void)
{
    pmix_value_t value = {.type = PMIX_UINT32, .data = {.uint32 = me.rank}};
    for (int limits = 0; limits < 2; limits++) {
        pmix_rank_t rank = size - 1 - (uint32_t)limits;
        char text[64];
        if (me.rank < 2)
            CHECK(wait_for(rank, limits, "go") == 0);
        if (me.rank == rank && limits == 1)
            CHECK(lookup("go", PMIX_RANGE_SESSION, 1, 0, text) == PMIX_SUCCESS);
        if (me.rank == rank && limits == 0)
            sleep(2); /* longer than the limit */
        if (me.rank == rank)
            CHECK(PMIx_Put(PMIX_GLOBAL, "card", &value) == PMIX_SUCCESS &&
                  PMIx_Commit() == PMIX_SUCCESS);
        CHECK(fence() == PMIX_SUCCESS);
    }
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} tests[] = {
    {"publish", test_publish},   {"timeout", test_timeout}, {"modex", test_modex},
    {"keys", test_keys},         {"query", test_query},     {"group", test_group},
    {"connect", test_connect},   {"control", test_control}, {"log", test_log},
    {"spawn", test_spawn},       {"event", test_event},     {"abort", test_abort},
    {"fetch", test_fetch},       {"some", test_some},       {"notify", test_notify},
    {"leave", test_leave},       {"large", test_large},     {"called", test_called},
    {"every", test_every},       {"silent", test_silent},   {"told", test_told},
    {"patience", test_patience}, {"rounds", test_rounds},   {"change", test_change},
    {"gone", test_gone},         {"again", test_again},
};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    pmix_status_t status = PMIx_Init(&me, NULL, 0);
    if (status != PMIX_SUCCESS || number_of(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &size) < 0) {
        printf("no PMIx server: %s\n", PMIx_Error_string(status));
        return 1;
    }
    int result = 2;
    if (argc > 2)
        nodes = (uint32_t)strtoul(argv[2], NULL, 10);
    for (size_t i = 0; argc > 1 && i < sizeof(tests) / sizeof(tests[0]); i++)
        if (strcmp(tests[i].name, argv[1]) == 0)
            result = tests[i].run();
    if (result == 0)
        printf("rank %u %s ok\n", me.rank, argv[1]);
    PMIx_Finalize(NULL, 0);
    return result;
}
