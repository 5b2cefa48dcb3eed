/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PMIx server with real clients: Open MPI programs and a plain PMIx client (tests/workers/).
 * PMIx starts once per process, so the tests share one server; each has a namespace of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "pmix/pmix_server.h"
#include "unit.h"

#define WORKERS HVDRUN_MODULES "/../../tests/workers"
#define RANKS_MAX 64
#define RUN_LIMIT_MS 40000
/* Not at once: libpmix 4.2 locks up now and then when a client is killed while it connects. */
#define KILL_REST_AFTER_MS 400

extern char **environ;

/* Found by ASan only if they are exported, which nothing else is here.
 * libpmix keeps what it has allocated, and what it could not unpack. Of each block, ASan keeps the
 * last calls only: what our module allocates while libpmix calls it is not one of libpmix's. A
 * block that libpmix allocates for us is, so a leak of it is not found here. */
#define FOR_ASAN __attribute__((visibility("default")))

FOR_ASAN const char *__lsan_default_suppressions(void)
{
    return "leak:libpmix\nleak:libhwloc\nleak:libevent\nleak:libpci\n";
}

/* What a damaged length asks for is refused, as it is without ASan. */
FOR_ASAN const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:malloc_context_size=3";
}

static struct {
    struct pmix_server *server;
    char *tmpdir, *shm_dir;
    char hostname[256];
    int epoch;
    bool complaints_are_for_v;
    /* one run */
    int np;
    char nspace[64];
    int aborted_rank, aborted_status, signalled_rank, signal;
    char abort_message[128];
    struct buf log, info, output; /* info: what only -v shows */
    bool elsewhere;               /* the last rank is on another node */
    struct buf given;             /* by the members of a group here */
    const struct buf *answer;     /* what all of them give; NULL: the same */
    int codes[RANKS_MAX];
    enum pmix_worker_state states[RANKS_MAX];
} world;

static void on_aborted(void *context, int rank, int status, const char *message, bool whole_job)
{
    (void)context;
    assert_true(whole_job);
    world.aborted_rank = rank;
    world.aborted_status = status;
    snprintf(world.abort_message, sizeof(world.abort_message), "%s", message);
}

static void on_log(void *context, enum log_level level, const char *line)
{
    (void)context;
    buf_printf(level == LOG_INFO ? &world.info : &world.log, "%s\n", line);
}

static void on_signal(void *context, int rank, int number)
{
    (void)context;
    world.signalled_rank = rank;
    world.signal = number;
}

/* As if the other node had given the same bytes, or those that a test says. */
static void on_collect(void *context, uint64_t id, const char *operation, const int *all,
                       size_t count, const void *bytes, size_t length)
{
    (void)context, (void)all, (void)count;
    bool construct = strncmp(operation, "construct ", strlen("construct ")) == 0;
    if (construct) {
        buf_clear(&world.given);
        buf_append(&world.given, bytes, length);
    }
    bool own = !construct || world.answer == NULL;
    world.server->module->collect_reply(world.server->inner, id, true, 7,
                                        own ? bytes : buf_text(world.answer),
                                        own ? length : world.answer->length);
}

static const struct pmix_server_ops ops = {
    .collect = on_collect, .aborted = on_aborted, .log = on_log, .signal = on_signal};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st, (void)type, (void)walk;
    return remove(path);
}

static const int all_ranks[RANKS_MAX] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                         11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};

static int begin_job(int np, char *const *argv, int first_app, struct error *err)
{
    int here = np - world.elsewhere;
    struct pmix_job_node nodes[] = {{world.hostname, all_ranks, here},
                                    {"far", all_ranks + here, 1}};
    struct pmix_job_app apps[] = {{argv, NULL, first_app, 0},
                                  {argv, "/", np - first_app, first_app}};
    snprintf(world.nspace, sizeof(world.nspace), "hvdrun-test-%d@%d", (int)getpid(), ++world.epoch);
    struct pmix_job job = {.nspace = world.nspace,
                           .size = np,
                           .nodes = nodes,
                           .node_count = 1 + world.elsewhere,
                           .apps = apps,
                           .app_count = first_app < np ? 2 : 1,
                           .uid = getuid(),
                           .gid = getgid(),
                           .wdir = "/tmp",
                           .shm_dir = world.shm_dir,
                           .oversubscribed = np > 1};
    world.np = np;
    world.aborted_rank = world.signalled_rank = -1;
    buf_clear(&world.log);
    buf_clear(&world.output);
    return pmix_server_job(world.server, &job, err);
}

/* As where the host's plugins do not fit the library, which says so on standard error and later to
 * its own log. true: only -v shows it. */
static bool complaints_are_for_v(const char *folder)
{
    struct error err = ERROR_INIT;
    char bytes[4096] = "", *argv[] = {(char *)"x", NULL};
    int said AUTO_FD = memfd_create("stderr", MFD_CLOEXEC);
    fd_dup2(said, STDERR_FILENO);
    setenv("PMIX_MCA_pcompress", "nosuch", 1);
    if (pmix_server_start(world.server, folder, world.hostname, &err) < 0 ||
        begin_job(1, argv, 1, &err) < 0)
        return false;
    int64_t limit = unit_limit_ms(10000);
    while (strstr(buf_text(&world.info), "PMIx: on the system. We will") == NULL) {
        struct pollfd ready = {world.server->module->fd(world.server->inner), POLLIN, 0};
        poll(&ready, 1, 100);
        world.server->module->dispatch(world.server->inner);
        if (unit_is_over(limit))
            return false;
    }
    return pread(said, bytes, sizeof(bytes), 0) == 0 && world.log.length == 0 &&
           strstr(buf_text(&world.info), "PMIx: Component: nosuch\n") != NULL &&
           strstr(buf_text(&world.info), "rank 0") == NULL;
}

/* In a process of its own, since PMIx starts only once in a process, and before any other start. */
static bool try_complaints(void)
{
    int status = 0;
    char *folder AUTO_FREE = mem_printf("%s/complaints", world.tmpdir);
    pid_t pid = mkdir(folder, 0700) < 0 ? -1 : fork();
    if (pid == 0)
        _exit(complaints_are_for_v(folder) ? 0 : 1);
    bool well = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return well;
}

static int setup(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char tmpdir[] = "/tmp/hvdrun-test-pmix-XXXXXX";
    assert_non_null(mkdtemp(tmpdir));
    world.tmpdir = mem_strdup(tmpdir);
    world.shm_dir = mem_printf("%s/shm", tmpdir);
    assert_int_equal(mkdir(world.shm_dir, 0700), 0);
    gethostname(world.hostname, sizeof(world.hostname));
    buf_init(&world.log, 1 << 16);
    buf_init(&world.info, 1 << 16);
    buf_init(&world.output, 1 << 20);
    buf_init(&world.given, 1 << 20);
    world.server = pmix_server_load(HVDRUN_MODULES "/hvdrun-pmix.so", &ops, NULL, &err);
    world.complaints_are_for_v = world.server != NULL && try_complaints();
    if (world.server == NULL || pmix_server_start(world.server, tmpdir, world.hostname, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pmix_server_stop(world.server);
    nftw(world.tmpdir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    int left = access(world.tmpdir, F_OK) == 0;
    free(world.tmpdir);
    free(world.shm_dir);
    buf_destroy(&world.log);
    buf_destroy(&world.info);
    buf_destroy(&world.output);
    buf_destroy(&world.given);
    return left ? -1 : 0;
}

static pid_t spawn(int rank, char *const *argv, int output)
{
    struct strv env AUTO_STRV = STRV_INIT;
    struct strv hints AUTO_STRV = STRV_INIT;
    struct error err = ERROR_INIT;
    strv_copy(&env, environ);
    if (world.server->module->worker_env(world.server->inner, rank, &env, &hints, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < hints.count; i++)
        strv_env_put(&env, hints.items[i]);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        execve(argv[0], argv, strv_items(&env));
        _exit(127);
    }
    world.server->module->worker_started(world.server->inner, rank, pid);
    return pid;
}

static void reap(pid_t *pids, int np, int *left)
{
    int status = 0;
    for (pid_t pid = waitpid(-1, &status, WNOHANG); *left > 0 && pid > 0;
         pid = *left > 0 ? waitpid(-1, &status, WNOHANG) : 0) {
        int rank = 0;
        while (rank < np && pids[rank] != pid)
            rank++;
        assert_in_range(rank, 0, np - 1);
        world.server->module->dispatch(world.server->inner);
        world.states[rank] = world.server->module->worker_state(world.server->inner, rank);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        world.codes[rank] = number != 0 ? 128 + number : code;
        world.server->module->worker_ended(world.server->inner, rank, code, number);
        pids[rank] = 0;
        (*left)--;
    }
}

/* Runs until all have ended; what is left after the first failure (`kill_rest`) or the limit is
 * killed. The output of all is in world.output. */
static void run(int np, char *const *argv, int first_app, bool kill_rest)
{
    struct error err = ERROR_INIT;
    pid_t pids[RANKS_MAX] = {0};
    int output AUTO_FD = memfd_create("output", MFD_CLOEXEC);
    /* O_APPEND, so that the ranks do not write over each other */
    fcntl(output, F_SETFL, O_APPEND);
    if (begin_job(np, argv, first_app, &err) < 0)
        fail_msg("%s", err.text);
    np -= world.elsewhere; /* from here on: those that run here */
    int left = np;
    for (int rank = 0; rank < np; rank++)
        pids[rank] = spawn(rank, argv, output);
    int64_t limit = unit_limit_ms(RUN_LIMIT_MS);
    bool killed = false;
    memset(world.codes, 0, sizeof(world.codes));
    while (left > 0) {
        struct pollfd ready = {world.server->module->fd(world.server->inner), POLLIN, 0};
        poll(&ready, 1, 10);
        world.server->module->dispatch(world.server->inner);
        reap(pids, np, &left);
        for (int rank = 0; kill_rest && rank < np; rank++)
            if (world.codes[rank] != 0 && limit > unit_limit_ms(KILL_REST_AFTER_MS))
                limit = unit_limit_ms(KILL_REST_AFTER_MS);
        if (!killed && unit_is_over(limit)) {
            for (int rank = 0; rank < np; rank++)
                if (pids[rank] > 0)
                    kill(pids[rank], SIGKILL);
            killed = true;
        }
    }
    world.server->module->dispatch(world.server->inner);
    char bytes[4096];
    ssize_t count = 0;
    for (off_t at = 0; (count = pread(output, bytes, sizeof(bytes), at)) > 0; at += count)
        buf_append(&world.output, bytes, (size_t)count);
    world.server->module->job_end(world.server->inner, 0);
}

static void run_worker(int np, const char *name, const char *one, const char *two, bool kill_rest)
{
    char *path AUTO_FREE = mem_printf(WORKERS "/%s", name);
    char *argv[] = {path, (char *)(uintptr_t)one, (char *)(uintptr_t)two, NULL};
    run(np, argv, np, kill_rest);
}

static void expect_output(const char *line)
{
    if (strstr(buf_text(&world.output), line) == NULL)
        fail_msg("no '%s' in: %s", line, buf_text(&world.output));
}

static int entries_of(const char *path)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int count = 0;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void test_complaints(void **state)
{
    (void)state;
    assert_true(world.complaints_are_for_v);
}

static void test_hello(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 5};
    for (size_t i = 0; i < 3; i++) {
        int np = sizes[i];
        run_worker(np, "mpi_hello.openmpi", NULL, NULL, true);
        for (int rank = 0; rank < np; rank++) {
            char *line AUTO_FREE =
                mem_printf("rank %d of %d sum %d\n", rank, np, np * (np - 1) / 2);
            expect_output(line);
            assert_int_equal(world.codes[rank], 0);
            assert_int_equal(world.states[rank], PMIX_WORKER_FINALIZED);
        }
    }
}

static void test_ring(void **state)
{
    (void)state;
    run_worker(3, "mpi_ring.openmpi", "200000", "4", true);
    expect_output("ring of 3 ok");
}

static void test_two_apps(void **state)
{
    (void)state;
    char *path AUTO_FREE = mem_strdup(WORKERS "/mpi_pmix");
    char *argv[] = {path, (char *)"keys", NULL};
    run(3, argv, 1, true);
    expect_output("rank 2 keys ok");
}

static void test_abort(void **state)
{
    (void)state;
    run_worker(3, "mpi_abort.openmpi", "1", "7", true);
    assert_int_equal(world.aborted_rank, 1);
    assert_int_equal(world.aborted_status, 7);
    assert_string_equal(world.abort_message, ""); /* MPI_Abort has none: Open MPI says "N/A" */
    assert_int_equal(world.codes[1], 7);
    assert_int_equal(world.states[1], PMIX_WORKER_ABORTED);
    run_worker(2, "mpi_pmix", "abort", NULL, false);
    assert_int_equal(world.codes[1], 5);
    assert_string_equal(world.abort_message, "no more coal");
}

static void test_publish(void **state)
{
    (void)state;
    run_worker(3, "mpi_publish.openmpi", NULL, NULL, true);
    expect_output("rank 1 found the port");
    expect_output("rank 2 found the port");
    expect_output("rank 2 gone");
    run_worker(2, "mpi_publish.openmpi", "connect", NULL, true);
    expect_output("rank 0 met 41");
    expect_output("rank 1 met 40");
}

static void test_deaths(void **state)
{
    (void)state;
    static const struct {
        const char *when;
        enum pmix_worker_state state;
    } deaths[] = {{"before", PMIX_WORKER_SILENT},
                  {"in", PMIX_WORKER_SILENT},
                  {"after", PMIX_WORKER_CONNECTED},
                  {"late", PMIX_WORKER_FINALIZED}};
    unsetenv("RANK");
    for (size_t i = 0; i < 4; i++) {
        run_worker(2, "mpi_die.openmpi", deaths[i].when, "1", true);
        assert_int_equal(world.codes[1], 3);
        /* Three milliseconds into MPI_Init it may or may not be connected. */
        if (strcmp(deaths[i].when, "in") != 0)
            assert_int_equal(world.states[1], deaths[i].state);
        else
            assert_int_not_equal(world.states[1], PMIX_WORKER_FINALIZED);
        assert_int_equal(entries_of(world.shm_dir),
                         2); /* "." and "..": nothing is left of the killed */
    }
}

/* One conversation after the other, each rank saying "rank R NAME ok". */
static void test_conversations(void **state)
{
    (void)state;
    static const char *const names[] = {"publish", "timeout", "modex", "keys",  "query", "group",
                                        "connect", "control", "log",   "spawn", "told"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        run_worker(3, "mpi_pmix", names[i], NULL, true);
        for (int rank = 0; rank < 3; rank++) {
            char *line AUTO_FREE = mem_printf("rank %d %s ok\n", rank, names[i]);
            expect_output(line);
        }
        if (strcmp(names[i], "control") == 0) {
            assert_int_equal(world.signalled_rank, 1);
            assert_int_equal(world.signal, 10);
        }
        if (strcmp(names[i], "log") == 0)
            assert_string_equal(buf_text(&world.log), "rank 0: first line\nrank 0: second line\n");
    }
}

static void test_groups(void **state)
{
    (void)state;
    static const char *const names[] = {"data", "many", "halves", "plain"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        run_worker(3, "mpi_group", names[i], NULL, true);
        for (int rank = 0; rank < 3; rank++) {
            char *line AUTO_FREE = mem_printf("rank %d %s ok\n", rank, names[i]);
            expect_output(line);
        }
    }
}

/* Whether rank 0 gets its group, when all members together give these bytes. */
static bool is_constructed(const struct buf *answer)
{
    /* libpmix 4.2 never forgets a group that was not made */
    char *name AUTO_FREE = mem_printf("group%d", world.epoch);
    world.answer = answer;
    run_worker(2, "mpi_group", "own", name, true);
    world.answer = NULL;
    bool refused = strstr(buf_text(&world.output), "PMIx_Group_construct(") != NULL;
    assert_int_equal(world.states[0], PMIX_WORKER_FINALIZED);
    assert_int_equal(refused, strstr(buf_text(&world.log), "cannot read what members") != NULL);
    return !refused;
}

#define HEAD 8 /* before what a node gives */

/* The first `length` bytes of what a node gives. */
static void put_node(struct buf *bytes, const char *given, size_t length)
{
    buf_clear(bytes);
    buf_append(bytes, given, 4);
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_putc(bytes, (char)(length >> shift));
    buf_append(bytes, given + HEAD, length);
}

/* What another node says of its members is proved. */
static void test_group_from_afar(void **state)
{
    (void)state;
    struct buf bytes AUTO_BUF = BUF_INIT(1 << 20);
    world.elsewhere = true;
    assert_true(is_constructed(NULL));
    expect_output("rank 0 own ok");
    assert_true(world.given.length > 40);
    char *given AUTO_FREE = mem_dup(world.given.bytes, world.given.length);
    size_t length = world.given.length;
    buf_append(&bytes, given, length);
    buf_append(&bytes, given, length);
    assert_true(is_constructed(&bytes));
    buf_clear(&bytes);
    assert_true(is_constructed(&bytes)); /* they give nothing */
    buf_puts(&bytes, "no data of a group at all, but long enough for a header");
    assert_false(is_constructed(&bytes));
    for (size_t i = 1; i < length; i += length / 5) {
        buf_clear(&bytes);
        buf_append(&bytes, given, i); /* cut */
        assert_false(is_constructed(&bytes));
        put_node(&bytes, given, i > HEAD ? i - HEAD : 1); /* the same, and its head says so */
        assert_false(is_constructed(&bytes));
        buf_clear(&bytes);
        buf_append(&bytes, given, length);
        bytes.bytes[i] ^= 0x55;
        is_constructed(&bytes);
    }
    /* The count of items, the length of a key, a type, the size of the bytes that we do not read.
     */
    static const size_t places[] = {HEAD, HEAD + 1, HEAD + 18, HEAD + 19};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        buf_clear(&bytes);
        buf_append(&bytes, given, length);
        bytes.bytes[places[i]] ^= 0xff;
        assert_false(is_constructed(&bytes));
    }
    buf_clear(&bytes);
    buf_append(&bytes, given, length);
    buf_append(&bytes, "\0\0\0\143\0\0\0\0", HEAD); /* version 99 */
    assert_false(is_constructed(&bytes));
    buf_clear(&bytes);
    buf_append(&bytes, given, HEAD - 1);
    buf_append(&bytes, "\0\0\0\0\143\0\0\0\0", HEAD + 1); /* but nobody gives anything */
    memset(bytes.bytes + 4, 0, 4);
    assert_true(is_constructed(&bytes));
    world.elsewhere = false;
}

static void test_death_is_told(void **state)
{
    (void)state;
    run_worker(3, "mpi_pmix", "event", NULL, false);
    assert_int_equal(world.codes[1], 9);
    expect_output("rank 0 event ok");
    expect_output("rank 2 event ok");
}

static void test_environment(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct strv env AUTO_STRV = STRV_INIT;
    struct strv hints AUTO_STRV = STRV_INIT;
    char *argv[] = {(char *)"prog", (char *)"arg one", NULL};
    assert_int_equal(begin_job(4, argv, 1, &err), 0);
    strv_add(&env, "PMIX_RANK=77");
    assert_int_equal(world.server->module->worker_env(world.server->inner, 2, &env, &hints, &err),
                     0);
    static const char *const expected[][2] = {{"PMIX_RANK", "2"},
                                              {"OMPI_COMM_WORLD_RANK", "2"},
                                              {"OMPI_COMM_WORLD_SIZE", "4"},
                                              {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                              {"OMPI_COMM_WORLD_NODE_RANK", "2"},
                                              {"OMPI_UNIVERSE_SIZE", "4"},
                                              {"OMPI_NUM_APP_CTX", "2"},
                                              {"OMPI_APP_CTX_NUM_PROCS", "1 3"},
                                              {"OMPI_FIRST_RANKS", "0 1"},
                                              {"OMPI_COMMAND", "prog"},
                                              {"OMPI_ARGV", "prog arg one"},
                                              {"OMPI_MCA_initial_wdir", "/"}};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const char *value = strv_env_get(&env, expected[i][0]);
        if (value == NULL || strcmp(value, expected[i][1]) != 0)
            fail_msg("%s is %s", expected[i][0], value);
    }
    assert_string_equal(strv_env_get(&env, "PMIX_NAMESPACE"), world.nspace);
    assert_string_equal(strv_env_get(&env, "OMPI_MCA_orte_tmpdir_base"), world.tmpdir);
    /* these give way to the user's */
    assert_string_equal(strv_env_get(&hints, "OMPI_MCA_btl_vader_backing_directory"),
                        world.shm_dir);
    assert_string_equal(strv_env_get(&hints, "OMPI_MCA_btl_sm_backing_directory"), world.shm_dir);
    assert_string_equal(strv_env_get(&hints, "OMPI_MCA_shmem"), "mmap");
    assert_string_equal(strv_env_get(&hints, "OMPI_MCA_mpi_yield_when_idle"), "1");
    assert_null(strv_env_get(&env, "OMPI_MCA_btl_vader_backing_directory"));
    assert_null(strv_env_get(&env, "OMPI_MCA_shmem"));
    assert_string_equal(strv_env_get(&env, "PMIX_SERVER_TMPDIR"), world.tmpdir);
    assert_string_equal(strv_env_get(&env, "PMIX_SYSTEM_TMPDIR"), world.tmpdir);
    assert_non_null(strv_env_get(&env, "JSM_JSRUN_PORT"));
    assert_non_null(strv_env_get(&env, "PMIX_SERVER_URI41"));
    assert_int_equal(world.server->module->worker_env(world.server->inner, 9, &env, &hints, &err),
                     -1);
    assert_non_null(strstr(err.text, "rank 9"));
    world.server->module->job_end(world.server->inner, 0);
    assert_int_equal(world.server->module->worker_env(world.server->inner, 2, &env, &hints, &err),
                     -1);
}

/* What the library is told by the environment while it starts is gone afterwards, and the plugins
 * of hwloc that nobody needs here, some of which open GPUs, are not in the process. */
static void test_start_leaves_no_trace(void **state)
{
    (void)state;
    struct buf maps AUTO_BUF = BUF_INIT((size_t)4 << 20);
    assert_null(getenv("HWLOC_PLUGINS_BLACKLIST"));
    assert_null(getenv("PMIX_MCA_psec"));
    assert_int_equal(fd_read_file("/proc/self/maps", &maps, NULL), 0);
    assert_non_null(strstr(buf_text(&maps), "libpmix"));
    assert_null(strstr(buf_text(&maps), "hwloc_gl"));
    assert_null(strstr(buf_text(&maps), "hwloc_opencl"));
}

static void test_bad_jobs(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char *argv[] = {(char *)"x", NULL};
    struct pmix_job_node node = {world.hostname, all_ranks, 3};
    struct pmix_job_app app = {argv, NULL, 2, 0};
    struct pmix_job job = {
        .nspace = "bad", .size = 2, .nodes = &node, .node_count = 1, .apps = &app, .app_count = 1};
    assert_int_equal(pmix_server_job(world.server, &job, &err), -1); /* rank 2 of 2 */
    assert_non_null(strstr(err.text, "rank 2"));
    node.rank_count = 1;
    assert_int_equal(pmix_server_job(world.server, &job, &err), -1); /* 1 of 2 placed */
    job.my_node = 1;
    assert_int_equal(pmix_server_job(world.server, &job, &err), -1);
    assert_int_equal(begin_job(1, argv, 1, &err), 0);
    assert_int_equal(begin_job(1, argv, 1, &err), -1); /* one at a time */
    world.server->module->job_end(world.server->inner, 0);
    world.server->module->job_end(world.server->inner, 0); /* harmless */
}

/* A second namespace, beside the first: ranks have numbers over both. */
static void test_two_namespaces(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct strv env AUTO_STRV = STRV_INIT;
    struct strv hints AUTO_STRV = STRV_INIT;
    char *argv[] = {(char *)"child", NULL};
    static const int ranks[] = {0, 1, 2};
    struct pmix_job_node nodes[] = {{world.hostname, ranks, 3}};
    struct pmix_job_app app = {argv, NULL, 3, 0};
    struct pmix_job job = {.nspace = "spawned",
                           .size = 3,
                           .universe_size = 9,
                           .first = 1,
                           .parent_nspace = world.nspace,
                           .nodes = nodes,
                           .node_count = 1,
                           .apps = &app,
                           .app_count = 1,
                           .uid = getuid(),
                           .gid = getgid(),
                           .wdir = "/"};
    assert_int_equal(begin_job(2, argv, 2, &err), 0);
    assert_int_equal(pmix_server_job(world.server, &job, &err), -1); /* 1 is taken */
    assert_non_null(strstr(err.text, "still has the job"));
    job.first = 2;
    assert_int_equal(pmix_server_job(world.server, &job, &err), 0);
    assert_int_equal(world.server->module->worker_env(world.server->inner, 4, &env, &hints, &err),
                     0);
    assert_string_equal(strv_env_get(&env, "PMIX_NAMESPACE"), "spawned");
    assert_string_equal(strv_env_get(&env, "PMIX_RANK"), "2");
    assert_string_equal(strv_env_get(&env, "OMPI_COMM_WORLD_RANK"), "2");
    assert_string_equal(strv_env_get(&env, "OMPI_UNIVERSE_SIZE"), "9");
    assert_int_equal(world.server->module->worker_env(world.server->inner, 1, &env, &hints, &err),
                     0);
    assert_string_equal(strv_env_get(&env, "PMIX_NAMESPACE"), world.nspace);
    assert_int_equal(world.server->module->worker_env(world.server->inner, 5, &env, &hints, &err),
                     -1);
    world.server->module->job_end(world.server->inner, 0);
    assert_int_equal(world.server->module->worker_env(world.server->inner, 1, &env, &hints, &err),
                     -1);
    assert_int_equal(world.server->module->worker_env(world.server->inner, 2, &env, &hints, &err),
                     0);
    world.server->module->job_end(world.server->inner, 2);
    assert_int_equal(world.server->module->worker_env(world.server->inner, 2, &env, &hints, &err),
                     -1);
}

static void test_many_epochs(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char *argv[] = {(char *)"x", NULL};
    int before = 0;
    for (int round = 0; round < 100; round++) {
        if (begin_job(8, argv, 8, &err) < 0)
            fail_msg("round %d: %s", round, err.text);
        world.server->module->job_end(world.server->inner, 0);
        if (round == 10)
            before = entries_of("/proc/self/fd");
    }
    assert_int_equal(entries_of("/proc/self/fd"), before);
    run_worker(2, "mpi_hello.openmpi", NULL, NULL, true);
    expect_output("rank 0 of 2 sum 1");
}

static void test_second_start(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct pmix_server *second =
        pmix_server_load(HVDRUN_MODULES "/hvdrun-pmix.so", &ops, NULL, &err);
    assert_non_null(second);
    assert_int_equal(pmix_server_start(second, world.tmpdir, world.hostname, &err), -1);
    assert_non_null(strstr(err.text, "once"));
    pmix_server_stop(second);
    pmix_server_stop(NULL);
}

static void test_wrong_modules(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_null(pmix_server_load("/nonexistent/hvdrun-pmix.so", &ops, NULL, &err));
    assert_non_null(strstr(err.text, "/nonexistent/hvdrun-pmix.so"));
    assert_null(pmix_server_load("libm.so.6", &ops, NULL, &err));
    assert_null(pmix_server_load("/etc/passwd", &ops, NULL, &err));
    assert_non_null(strstr(err.text, "/etc/passwd"));
    assert_non_null(strstr(err.text, "--mpi=none"));
    assert_null(strchr(err.text, '\n'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complaints),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_two_apps),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_publish),
        cmocka_unit_test(test_deaths),
        cmocka_unit_test(test_conversations),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_group_from_afar),
        cmocka_unit_test(test_death_is_told),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_start_leaves_no_trace),
        cmocka_unit_test(test_bad_jobs),
        cmocka_unit_test(test_two_namespaces),
        cmocka_unit_test(test_many_epochs),
        cmocka_unit_test(test_second_start),
        cmocka_unit_test(test_wrong_modules),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
