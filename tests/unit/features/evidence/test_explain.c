/* SPDX-License-Identifier: Apache-2.0 */
/* The story of a failure: facts in, text out. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/evidence/evidence.h"

#define CORES_OFF \
    "core_pattern: core\nsoft limit: 0 bytes\nthe soft limit is 0, so there are no core files\n"

static void expect(const struct explain_facts *facts, const char *wanted)
{
    struct buf text AUTO_BUF = BUF_INIT(100000);
    struct explain_story story;
    explain_tell(facts, &story);
    explain_story_text(&story, &text);
    assert_string_equal(buf_text(&text), wanted);
    explain_story_destroy(&story);
}

static void expect_part(const struct explain_facts *facts, const char *part)
{
    struct buf text AUTO_BUF = BUF_INIT(100000);
    struct explain_story story;
    explain_tell(facts, &story);
    explain_story_text(&story, &text);
    if (strstr(buf_text(&text), part) == NULL)
        fail_msg("'%s' is missing in: %s", part, buf_text(&text));
    explain_story_destroy(&story);
}

/* With few words: both are about collectives. */
static void test_nccl_and_pytorch(void **state)
{
    (void)state;
    struct explain_facts facts = {.kind = "hang", .rank = -1, .has_folder = true};
    facts.nccl = "ras_2.json";
    expect_part(&facts, "ras_2.json has NCCL's own numbers of operations\n");
    facts.flights = 1;
    expect_part(&facts,
                "operations; flight_recorder has the last collectives of 1 rank, and 'torch");
    facts.nccl = NULL;
    facts.flights = 7;
    expect_part(&facts, "    flight_recorder has the last collectives of 7 ranks, and 'torch");
}

static void test_a_rank_that_left_mpi(void **state)
{
    (void)state;
    struct explain_rank rank = {.rank = 0, .host = "a", .ended = true, .ended_s = 112};
    struct explain_facts facts = {.kind = "hang",
                                  .what = "the job hangs: rank 0 has exited with 0 without "
                                          "MPI_Finalize, and all ranks that run have waited",
                                  .ranks = &rank,
                                  .rank_count = 1,
                                  .has_folder = true};
    expect_part(&facts, "let rank 0 call MPI_Finalize before it exits");
}

static void test_an_error_of_a_rank(void **state)
{
    (void)state;
    struct explain_rank ranks[] = {
        {.rank = 0, .host = "a", .ended = true, .code = 1, .ended_s = 112.5},
        {.rank = 1, .host = "a", .ended = true, .signaled = true, .code = 15, .consequence = true},
        {.rank = 2, .host = "b", .ended = true, .code = 1, .ended_s = 112},
        {.rank = 3, .host = "b", .ended = true, .signaled = true, .code = 9, .consequence = true},
        {.rank = 4, .host = "b", .ended = true},
    };
    struct explain_facts facts = {.job = "j-1",
                                  .kind = "failure",
                                  .what = "rank 2 on b exited with code 1",
                                  .rank = 2,
                                  .ended = true,
                                  .status = 1,
                                  .started_s = 100,
                                  .ended_s = 114,
                                  .ranks = ranks,
                                  .rank_count = 5,
                                  .said = "line 0\nline 1\nline 2\n  line 3\nline 4\n",
                                  .has_folder = true};
    expect(&facts, "j-1 failed with status 1, after 14.0 s\n"
                   "what happened first:\n"
                   "    rank 2 on b exited with code 1\n"
                   "    its stderr: line 2\n    its stderr: line 3\n    its stderr: line 4\n"
                   "where:\n    rank 2 on b\n    12.0 s after the start\n"
                   "what followed:\n"
                   "    rank 0 on a exited with code 1, 0.5 s later\n"
                   "    2 other ranks ended because of that\n"
                   "what to do:\n    rank 2 most likely says why it ended: look at its last lines "
                   "in lines.txt\n");
}

/* In a hang without a culprit, no rank is the first, so none is another one. */
static void test_no_rank_is_to_blame(void **state)
{
    (void)state;
    struct explain_rank ranks[] = {
        {.rank = 0, .host = "a", .ended = true, .signaled = true, .code = 15, .consequence = true}};
    struct explain_facts facts = {.kind = "hang",
                                  .what = "the job hangs",
                                  .rank = -1,
                                  .status = 119,
                                  .ranks = ranks,
                                  .rank_count = 1};
    expect_part(&facts, "what followed:\n    1 rank ended because of that\n");
}

/* Only if there is nothing on stderr. */
static void test_what_a_rank_printed(void **state)
{
    (void)state;
    struct explain_facts facts = {.what = "x", .rank = 0, .said = "", .printed = "1\n2\n"};
    expect_part(&facts, "    x\n    its stdout: 1\n    its stdout: 2\nwhat");
    facts.said = "3\n";
    expect_part(&facts, "    x\n    its stderr: 3\nwhat");
}

static void test_nothing_is_known(void **state)
{
    (void)state;
    expect(&(struct explain_facts){.rank = -1},
           "the job: how it ended is not known\nwhat happened first:\n    the first failure is not "
           "known\n"
           "what to do:\n    start the job again with --evidence DIR, which keeps more facts\n");
    expect(&(struct explain_facts){.job = "j", .rank = -1, .ended = true},
           "j succeeded with status 0\nwhat happened first:\n    no failure is known\nwhat to "
           "do:\n    nothing\n");
    expect_part(&(struct explain_facts){.job = "j", .rank = -1, .gone = true},
                "j is lost: its hvdrun is gone and did not write how the job ended\n");
    expect_part(&(struct explain_facts){.rank = 7, .what = "x", .has_folder = true},
                "look at stacks.txt and lines.txt");
}

static const struct explain_gpu gpus[] = {{.index = 0, .pci = "00000000:3A:00.0"},
                                          {.index = 1, .pci = "00000000:3B:00.0", .celsius = 40}};
static const struct explain_gpu lost[] = {{.index = 7, .trouble = "is lost", .uncorrected = 3}};
static const struct explain_gpu rows_of_gpus[] = {
    {.index = 0, .remapping_pending = true},
    {.index = 1, .remapping_pending = true, .remapping_failed = true}};
static const struct explain_gpu hot[] = {
    {.index = 0, .slowed_by = "hardware thermal slowdown", .celsius = 93},
    {.index = 1, .trouble = "needs a reset"}};

/* What happened to rank 0 on a, what is known of the host, and what the story says. */
static const struct row {
    const char *name;
    struct explain_rank rank;
    struct explain_host host;
    const char *kind, *cause;
    int status;
    const char *wanted[2];
} rows[] = {
    {"out of memory",
     {.ended = true, .signaled = true, .code = SIGKILL, .oom = true},
     {.memory = NULL},
     "failure",
     NULL,
     137,
     {"give rank 0 more memory, or start fewer ranks on a"}},
    {"a kill and the counter of the cgroup",
     {.ended = true, .signaled = true, .code = SIGKILL},
     {.memory = "cgroup max 7\ncgroup oom_kill 12\noom_kill 9\n"},
     "failure",
     NULL,
     137,
     {"give rank 0 more memory",
      "a: the kernel has killed 12 processes of its cgroup for lack of memory"}},
    {"one kill of the cgroup",
     {.ended = true, .signaled = true, .code = SIGKILL},
     {.memory = "cgroup oom_kill 1\n"},
     "failure",
     NULL,
     137,
     {"a: the kernel has killed 1 process of its cgroup for lack of memory"}},
    {"a kill alone",
     {.ended = true, .signaled = true, .code = SIGKILL},
     {.memory = "cgroup oom_kill 0\noom_kill 9\n"},
     "failure",
     NULL,
     137,
     {"hvdrun did not send that SIGKILL: look in the logs of a for a scheduler"}},
    {"pressure",
     {.rank = 0},
     {.pressure = "cpu some avg10=99\nmemory some avg10=50.00\nmemory full avg10=35.20 avg60=1\n"},
     "hang",
     NULL,
     119,
     {"a: all tasks waited for memory during 35 % of 10 s",
      "stacks.txt has two stacks of rank 0, one second apart"}},
    {"a crash without a core file",
     {.ended = true, .signaled = true, .code = SIGSEGV},
     {.cores = CORES_OFF},
     "failure",
     NULL,
     139,
     {"run 'ulimit -c unlimited' before hvdrun"}},
    {"a crash that a program of the host has seen",
     {.ended = true, .signaled = true, .code = SIGABRT},
     {.cores = "core_pattern: |/usr/lib/systemd/systemd-coredump %P\n"},
     "failure",
     NULL,
     134,
     {"'coredumpctl list' on a"}},
    {"a core file",
     {.ended = true, .signaled = true, .code = SIGBUS, .core = true},
     {.cores = CORES_OFF},
     "failure",
     NULL,
     135,
     {"rank 0 has left a core file on a"}},
    {"a full folder",
     {.ended = true, .signaled = true, .code = SIGBUS},
     {.folders =
          "/tmp: 7 of 9 MiB free\n/dev/shm: 0 of 64 MiB free, it is full, 5 of 9 inodes free\n"},
     "failure",
     NULL,
     135,
     {"a: /dev/shm is full", "free some space in /dev/shm on a"}},
    {"lines of the kernel",
     {.ended = true, .signaled = true, .code = SIGKILL},
     {.kernel = "[99.9] x: segfault at 0\n[101.5] nfs: server x not responding\n[102.0] "
                "eth0: link is up\n"},
     "failure",
     NULL,
     137,
     {"a: its kernel: [101.5] nfs: server x not responding"}},
    {"an error of a program on a GPU",
     {.ended = true, .code = 1},
     {.xid = "[99.9] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, off\n"
             "[101.5] NVRM: Xid (PCI:0000:3b:00): 31, pid=2091, name=python3, channel 0x0a, x\n"
             "[101.6] NVRM: Xid (PCI:0000:3b:00): 45, pid=2091, name=python3, x\n",
      .gpus = gpus,
      .gpu_count = 2},
     "failure",
     NULL,
     1,
     {"    a: GPU 1: XID 31, memory page fault, in python3 (pid 2091), and 1 more\n",
      "    the XID on a is most often an error of the program: CUDA_LAUNCH"}},
    {"one error of a program on a GPU",
     {.ended = true, .code = 1},
     {.xid = "[101.5] NVRM: Xid (PCI:0000:3b:00): 31, pid=2091, name=python3, channel 0x0a, x\n",
      .gpus = gpus,
      .gpu_count = 2},
     "failure",
     NULL,
     1,
     {"    a: GPU 1: XID 31, memory page fault, in python3 (pid 2091)\n"}},
    {"a GPU that the library does not list",
     {.ended = true, .code = 1},
     {.xid = "[101.5] NVRM: Xid (PCI:0000:0c:00): 79, GPU has fallen off the bus.\n"},
     "hang",
     NULL,
     119,
     {"    a: the GPU at 0000:0c:00: XID 79, the GPU has fallen off the bus\n",
      "start the next job without a, and have its GPUs checked"}},
    {"a GPU that is lost",
     {.ended = true, .code = 1},
     {.gpus = lost, .gpu_count = 1},
     "failure",
     NULL,
     1,
     {"    a: GPU 7: it is lost; 3 uncorrected ECC errors since its driver was loaded\n",
      "start the next job without a"}},
    {"rows of a GPU",
     {.ended = true, .code = 1},
     {.gpus = rows_of_gpus, .gpu_count = 2},
     "failure",
     NULL,
     1,
     {"    a: GPU 0: it replaces a bad row of its memory at the next reset\n"
      "    a: GPU 1: it could not replace a bad row of its memory\n",
      "start the next job without a"}},
    {"a GPU that is hot, after the one with errors",
     {.ended = true, .code = 1},
     {.gpus = hot, .gpu_count = 2, .gpus_missing = "NVIDIA's library did not answer in time"},
     "hang",
     NULL,
     119,
     {"    a: GPU 1: it needs a reset\n    a: NVIDIA's library did not answer in time\n"
      "    a: GPU 0 has lower clocks: hardware thermal slowdown, at 93 degrees Celsius\n"}},
    {"a timeout", {.rank = 0}, {.memory = NULL}, "timeout", NULL, 124, {"give a longer --timeout"}},
    {"an agent that does not answer",
     {.rank = 0},
     {.silent = true},
     "hang",
     NULL,
     119,
     {"a: its agent did not answer"}},
    {"a program that is not there",
     {.ended = true, .code = 127},
     {.memory = NULL},
     "failure",
     NULL,
     127,
     {"check that the program exists and can be run on a"}},
    {"a signal for hvdrun",
     {.rank = 0},
     {.memory = NULL},
     NULL,
     "interrupted",
     130,
     {"Ctrl-C, or a program"}},
};

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct explain_rank rank = rows[i].rank;
        struct explain_host host = rows[i].host;
        rank.host = host.host = "a";
        struct explain_facts facts = {.kind = rows[i].kind,
                                      .cause = rows[i].cause,
                                      .what = rows[i].name,
                                      .ended = true,
                                      .status = rows[i].status,
                                      .started_s = 100,
                                      .ended_s = 110,
                                      .ranks = &rank,
                                      .rank_count = 1,
                                      .hosts = &host,
                                      .host_count = 1,
                                      .has_folder = true};
        for (int j = 0; j < 2 && rows[i].wanted[j] != NULL; j++)
            expect_part(&facts, rows[i].wanted[j]);
    }
}

/* A line of the kernel from before the job is about something else. */
static void test_old_lines_of_the_kernel(void **state)
{
    (void)state;
    struct explain_host host = {.host = "a", .kernel = "[99.9] x: segfault at 0\n"};
    struct explain_facts facts = {
        .rank = -1, .started_s = 100, .hosts = &host, .host_count = 1, .what = "x"};
    struct explain_story story;
    explain_tell(&facts, &story);
    assert_int_equal(story.parts[EXPLAIN_HOSTS].count, 0);
    explain_story_destroy(&story);
    facts.started_s = 99;
    expect_part(&facts, "segfault at 0");
}

/* Another program of the host may crash, too. */
static void test_a_crash_of_somebody_else(void **state)
{
    (void)state;
    static const struct {
        int pid;
        const char *said;
        bool shown;
    } cases[] = {
        {2091, "", true},
        {209, "", false},
        {7, "DataLoader worker (pid 2091) is killed by signal: Segmentation fault\n", true},
        {7, "step 20910 of 12091\n", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct explain_rank rank = {.host = "a", .pid = cases[i].pid};
        struct explain_host host = {.host = "a",
                                    .kernel = "[101.5] python3[2091]: segfault at 0 ip 7f sp 7f\n"};
        struct explain_facts facts = {.what = "x",
                                      .kind = "timeout",
                                      .started_s = 100,
                                      .ranks = &rank,
                                      .rank_count = 1,
                                      .hosts = &host,
                                      .host_count = 1,
                                      .said = cases[i].said};
        struct explain_story story;
        explain_tell(&facts, &story);
        assert_int_equal(story.parts[EXPLAIN_HOSTS].count, cases[i].shown ? 1 : 0);
        explain_story_destroy(&story);
    }
}

/* An agent that cannot end a rank is lost in the end. The host was not. */
static void test_an_agent_that_is_lost_later(void **state)
{
    (void)state;
    struct explain_host host = {.host = "a", .lost_later = true};
    struct explain_facts facts = {
        .rank = -1, .kind = "hang", .what = "the job hangs", .hosts = &host, .host_count = 1};
    expect_part(&facts, "    a: its agent was lost, too\n");
    expect_part(&facts, "what to do:\n    stacks.txt shows where all ranks wait");
}

static void test_a_lost_host(void **state)
{
    (void)state;
    struct explain_host hosts[] = {{.host = "a"}, {.host = "b", .lost = true}};
    struct explain_facts facts = {.rank = -1,
                                  .what = "lost b: no heartbeat for 30.0 s",
                                  .ended = true,
                                  .status = 121,
                                  .hosts = hosts,
                                  .host_count = 2};
    expect_part(&facts, "where:\n    host b\n");
    expect_part(&facts, "check the power, the network and the kernel's log of b");
}

/* Three lines are all that there is: those of the rank's host come first. */
static void test_the_host_of_the_rank(void **state)
{
    (void)state;
    struct explain_rank rank = {.rank = 0, .host = "z", .ended = true, .code = 1};
    struct explain_host hosts[] = {{.host = "a", .silent = true},
                                   {.host = "b", .silent = true},
                                   {.host = "c", .silent = true},
                                   {.host = "z", .gpus = lost, .gpu_count = 1}};
    struct explain_facts facts = {
        .what = "x", .ranks = &rank, .rank_count = 1, .hosts = hosts, .host_count = 4};
    expect_part(&facts, "say:\n    z: GPU 7: it is lost");
}

static void test_variables(void **state)
{
    (void)state;
    struct explain_facts facts = {.rank = -1, .what = "x"};
    strv_add(&facts.differ, "OMP_NUM_THREADS: 1 on a, 8 on b");
    expect_part(&facts, "    a variable differs: OMP_NUM_THREADS: 1 on a, 8 on b\n");
    expect_part(&facts, "set them with -x");
    strv_destroy(&facts.differ);
}

/* The last line that there is room for counts the others. */
static void test_many_ranks_that_failed(void **state)
{
    (void)state;
    struct explain_rank ranks[6];
    for (int i = 0; i < 6; i++)
        ranks[i] = (struct explain_rank){
            .rank = i, .host = "a", .ended = true, .code = 1, .consequence = i == 5};
    struct explain_facts facts = {.what = "x", .ranks = ranks, .rank_count = 6};
    expect_part(&facts, "what followed:\n    rank 1 on a exited with code 1\n"
                        "    rank 2 on a exited with code 1\n"
                        "    1 other rank ended because of that\nwhat to do");
}

/* However much there is to say. */
static void test_a_bounded_story(void **state)
{
    (void)state;
    struct explain_rank ranks[100];
    struct explain_host hosts[50];
    for (int i = 0; i < 100; i++)
        ranks[i] = (struct explain_rank){.rank = i,
                                         .host = "h",
                                         .ended = true,
                                         .signaled = true,
                                         .code = SIGKILL,
                                         .oom = true,
                                         .consequence = i > 50};
    for (int i = 0; i < 50; i++)
        hosts[i] = (struct explain_host){
            .host = "h", .lost = true, .memory = "cgroup oom_kill 1\n", .cores = CORES_OFF};
    struct explain_facts facts = {.what = "x",
                                  .said = "1\n2\n3\n4\n5\n6\n",
                                  .kind = "hang",
                                  .ended = true,
                                  .status = 119,
                                  .started_s = 1,
                                  .ended_s = 2,
                                  .when_s = 2,
                                  .ranks = ranks,
                                  .rank_count = 100,
                                  .hosts = hosts,
                                  .host_count = 50};
    for (int i = 0; i < 100; i++)
        strv_printf(&facts.differ, "V%d: 1 on a", i);
    for (int i = 0; i < 100; i++)
        strv_printf(&facts.loaded, "rank %d: MPI /libmpi.so", i);
    struct buf text AUTO_BUF = BUF_INIT(100000);
    struct explain_story story;
    explain_tell(&facts, &story);
    explain_story_text(&story, &text);
    int lines = 0;
    for (const char *at = strchr(buf_text(&text), '\n'); at != NULL; at = strchr(at + 1, '\n'))
        lines++;
    assert_in_range(lines, 15, EXPLAIN_LINES);
    assert_non_null(
        strstr(buf_text(&text), "    rank 3: MPI /libmpi.so\n    and 96 more, in the report\n"));
    explain_story_destroy(&story);
    strv_destroy(&facts.differ);
    strv_destroy(&facts.loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rank_that_left_mpi),
        cmocka_unit_test(test_an_error_of_a_rank),
        cmocka_unit_test(test_nccl_and_pytorch),
        cmocka_unit_test(test_no_rank_is_to_blame),
        cmocka_unit_test(test_what_a_rank_printed),
        cmocka_unit_test(test_nothing_is_known),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_old_lines_of_the_kernel),
        cmocka_unit_test(test_a_lost_host),
        cmocka_unit_test(test_a_crash_of_somebody_else),
        cmocka_unit_test(test_an_agent_that_is_lost_later),
        cmocka_unit_test(test_the_host_of_the_rank),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_many_ranks_that_failed),
        cmocka_unit_test(test_a_bounded_story),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
