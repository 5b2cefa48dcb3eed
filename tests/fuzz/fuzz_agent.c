/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole agent whose driver is hostile: frames in any order, of which WELCOME, PREPARE, START and
 * STAGE begin as good ones, then the driver hangs up. The agent must end, with nothing wrong in
 * memory and no process left. Workers are /bin/true. No text that the fuzzer makes is ever run,
 * connected to or taken for a path: STAGE has a folder of its own. NOTIFY and the topics of checks,
 * which go out to other places, are left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_config.h"
#include "base/fd.h"
#include "base/tree.h"
#include "features/stage/stage.h"
#include "frames.h"

enum { CHILD_TRIES = 2000, CHILD_TRY_US = 5000 };

static const struct frames_kind kinds[] = {
    {FRAME_START, &hvdrun__start__descriptor},
    {FRAME_OUTPUT_CREDIT, &hvdrun__credit__descriptor},
    {FRAME_STDIN, NULL},
    {FRAME_SIGNAL, &hvdrun__signal__descriptor},
    {FRAME_END, &hvdrun__end__descriptor},
    {FRAME_QUIT, NULL},
    {FRAME_HEARTBEAT, &hvdrun__heartbeat__descriptor},
    {FRAME_HEARTBEAT_REPLY, &hvdrun__heartbeat__descriptor},
    {FRAME_SUSPEND, NULL},
    {FRAME_RESUME, NULL},
    {FRAME_KV_REPLY, &hvdrun__kv_reply__descriptor},
    {FRAME_ASK, &hvdrun__state_request__descriptor},
    {FRAME_ASK, &hvdrun__nothing__descriptor},
    {FRAME_WINDOW_SIZE, &hvdrun__window_size__descriptor},
    {FRAME_MPI_COLLECTED, &hvdrun__mpi_collected__descriptor},
    {FRAME_MPI_MODEX, &hvdrun__mpi_modex__descriptor},
    {FRAME_MPI_MODEX_DATA, &hvdrun__mpi_modex_data__descriptor},
    {FRAME_MPI_STORE_REPLY, &hvdrun__mpi_store_reply__descriptor},
    {FRAME_MPI_EVENT, &hvdrun__mpi_event__descriptor},
    {FRAME_MPI_SIGNAL, &hvdrun__mpi_signal__descriptor},
    {FRAME_END_WORKER, &hvdrun__end_worker__descriptor},
    {FRAME_CANCEL, NULL},
    {FRAME_EPOCH, NULL},
    {FRAME_DEADLINE, &hvdrun__deadline__descriptor},
    {FRAME_RANKS_ENDED, &hvdrun__ranks_ended__descriptor},
    {FRAME_PART, NULL},
    {FRAME_HELLO, &hvdrun__agent_hello__descriptor}, /* those of the other direction */
    {FRAME_OUTPUT, NULL},
};

/* Ranks 0 and 1 here, 2 and 3 on the other node. */
static void put_prepare(struct frames *frames, uint32_t epoch)
{
    Hvdrun__Prepare prepare = HVDRUN__PREPARE__INIT;
    Hvdrun__App app = HVDRUN__APP__INIT, *apps[] = {&app};
    Hvdrun__Worker workers[2] = {HVDRUN__WORKER__INIT, HVDRUN__WORKER__INIT};
    Hvdrun__Worker *list[] = {&workers[0], &workers[1]};
    char *argv[] = {"/bin/true"}, *hosts[] = {"a", "b"}, *env[] = {"PATH=/bin"};
    uint32_t host_ranks[] = {2, 2}, readers[] = {0, 1};
    uint8_t kind = fuzz_u8(frames->bytes);
    app.argv = argv;
    app.n_argv = 1;
    app.np = 4;
    app.mpi = kind % 3 == 0 ? "pmi1" : kind % 3 == 1 ? "none" : "auto";
    for (uint32_t i = 0; i < 2; i++) {
        workers[i].rank = workers[i].seat = workers[i].app_rank = i;
        workers[i].local_rank = workers[i].slot = i;
        workers[i].cross_size = 2;
    }
    prepare.size = 4;
    prepare.host = "a";
    prepare.hosts = prepare.hostnames = hosts;
    prepare.n_hosts = prepare.n_hostnames = 2;
    prepare.host_ranks = host_ranks;
    prepare.n_host_ranks = 2;
    prepare.apps = apps;
    prepare.n_apps = 1;
    prepare.workers = list;
    prepare.n_workers = 2;
    prepare.local_size = 2;
    prepare.base_env = env;
    prepare.n_base_env = 1;
    prepare.pty_seat = -1;
    prepare.stdin_seats = readers;
    prepare.n_stdin_seats = kind % 2 == 0 ? 2 : 0;
    frames_change(frames, &prepare.base);
    frames_put_message(frames, FRAME_PREPARE, epoch, &prepare.base);
}

static void put_welcome(struct frames *frames)
{
    Hvdrun__Welcome welcome = HVDRUN__WELCOME__INIT;
    welcome.protocol = FRAME_VERSION;
    welcome.version = HVDRUN_VERSION;
    welcome.job_id = "fuzz";
    welcome.node_timeout_ms = 30000;
    welcome.grace_ms = 100;
    welcome.drain_ms = 100;
    frames_change(frames, &welcome.base);
    /* the time that these say is waited for indeed */
    welcome.grace_ms %= 1000;
    welcome.drain_ms %= 1000;
    frames_put_message(frames, FRAME_WELCOME, 0, &welcome.base);
}

/* A list of one file, or its bytes. */
static void put_stage(struct frames *frames, const char *place)
{
    static const char content[] = "some bytes";
    struct buf list AUTO_BUF = BUF_INIT(1 << 10);
    struct stage_file file = {.kind = 'f', .name = "file", .size = sizeof(content)};
    Hvdrun__Stage stage = HVDRUN__STAGE__INIT;
    char *names[] = {"/src/file"};
    struct sha256 hash;
    uint8_t kind = fuzz_u8(frames->bytes);
    sha256_begin(&hash);
    sha256_add(&hash, content, sizeof(content));
    sha256_end(&hash, file.hash);
    if (kind % 4 == 0)
        file.size = 0; /* needs no chunk */
    (void)!stage_list_put(&list, &file);
    stage.root = kind >> 4 & 3;
    if (kind % 4 < 3) {
        stage.names = names;
        stage.n_names = 1;
        stage.list = (ProtobufCBinaryData){list.length, (uint8_t *)buf_text(&list)};
    } else {
        stage.bytes = (ProtobufCBinaryData){sizeof(content), (uint8_t *)(uintptr_t)content};
    }
    frames_change(frames, &stage.base);
    stage.folder = (char *)(uintptr_t)place;
    stage.dest = "";
    frames_put_message(frames, FRAME_STAGE, 0, &stage.base);
}

static void write_story(struct fuzz_bytes *bytes, struct buf *out, const char *place)
{
    struct frames frames = {.bytes = bytes, .out = out, .tame = true};
    while (bytes->left > 0) {
        uint8_t choice = fuzz_u8(bytes);
        frames.rank = choice >> 6 & 1;
        if (choice % 32 == 30)
            put_welcome(&frames);
        else if (choice % 32 == 31)
            put_stage(&frames, place);
        else if (choice % 32 >= 26)
            put_prepare(&frames, choice < 192 ? 1 : fuzz_u32(bytes));
        else
            frames_put_any(&frames, &kinds[choice % 32]);
    }
    frames_number(out, 0);
    frames_clear(&frames);
}

/* Called by libFuzzer before it starts a thread of its own, which would take SIGCHLD from the
 * agent's loop: then no end of a worker is noticed, and each run waits for ten seconds. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    sigset_t mask;
    (void)argc;
    (void)argv;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    return sigprocmask(SIG_BLOCK, &mask, NULL);
}

/* Reaps helper programs, which an agent that ends kills and does not wait for. Whatever lives on is
 * a worker that it has forgotten. */
static bool no_child_stays(void)
{
    for (int i = 0; i < CHILD_TRIES; i++) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0)
            return errno == ECHILD;
        if (pid == 0)
            usleep(CHILD_TRY_US);
    }
    return false;
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    AUTO_BUF struct buf story = BUF_INIT(FRAMES_MAX + 1024);
    sigset_t mask;
    char place[] = "/tmp/hvdrun-fuzz-agent-XXXXXX";
    int pair[2];
    FUZZ_CHECK(mkdtemp(place) != NULL);
    write_story(&bytes, &story, place);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    fd_nonblock(pair[1]);
    fd_write(pair[1], buf_text(&story), story.length);
    shutdown(pair[1], SHUT_WR);
    sigemptyset(&mask);
    struct agent_config config = {.read_fd = pair[0],
                                  .write_fd = pair[0],
                                  .module_dir = "/nonexistent",
                                  .mask = &mask,
                                  .keeper_fd = -1};
    agent_run(&config);
    fd_close(&pair[1]);
    FUZZ_CHECK(no_child_stays());
    FUZZ_CHECK(tree_remove(AT_FDCWD, place, NULL) == 0);
    return 0;
}
