/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole driver whose agents are hostile. The first byte chooses one node or two, and whether they
 * come up well first; the other bytes make frames. An agent that comes up well waits for PREPARE
 * and START, or for the first question of a check. Each agent sends its frames and hangs up. Then
 * the job must end with an exit status, and with nothing wrong in memory. The agents ignore what
 * the driver sends.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "driver/driver.h"
#include "frames.h"
#include "model/hosts/entry.h"
#include "model/hosts/hosts.h"

#define NODES 2
#define SEGMENTS 4
#define PATIENCE_MS 10000   /* for what a driver says to an agent that behaves */
#define END_PATIENCE_MS 500 /* for the end of the job, which may not come */

enum mode { MODE_TWO = 1, MODE_GOOD = 2, MODE_CHECK = 4, MODE_QUIET = 8 };

/* What one agent says: the next segment after it has heard a frame of this type. */
struct segment {
    uint8_t after; /* 0: at once */
    struct buf bytes;
};

struct peer {
    int fd;
    struct segment segments[SEGMENTS];
};

struct stage {
    struct peer peers[NODES];
    int count;
};

static const struct frames_kind kinds[] = {
    {FRAME_HELLO, &hvdrun__agent_hello__descriptor},
    {FRAME_READY, &hvdrun__ready__descriptor},
    {FRAME_STARTED, &hvdrun__started__descriptor},
    {FRAME_EXITED, &hvdrun__exited__descriptor},
    {FRAME_FINISHED, &hvdrun__finished__descriptor},
    {FRAME_OUTPUT, NULL},
    {FRAME_STDIN_CREDIT, &hvdrun__credit__descriptor},
    {FRAME_KILLING, &hvdrun__killing__descriptor},
    {FRAME_ENDED, NULL},
    {FRAME_HEARTBEAT, &hvdrun__heartbeat__descriptor},
    {FRAME_HEARTBEAT_REPLY, &hvdrun__heartbeat__descriptor},
    {FRAME_SUSPENDED, NULL},
    {FRAME_LOG, &hvdrun__log__descriptor},
    {FRAME_KV_REQUEST, &hvdrun__kv_request__descriptor},
    {FRAME_KV_DROPPED, &hvdrun__kv_notice__descriptor},
    {FRAME_ABORT, &hvdrun__abort__descriptor},
    {FRAME_ANSWER, &hvdrun__state_report__descriptor},
    {FRAME_TERMINATE, &hvdrun__terminate__descriptor},
    {FRAME_MPI_COLLECT, &hvdrun__mpi_collect__descriptor},
    {FRAME_MPI_MODEX, &hvdrun__mpi_modex__descriptor},
    {FRAME_MPI_MODEX_DATA, &hvdrun__mpi_modex_data__descriptor},
    {FRAME_MPI_STORE, &hvdrun__mpi_store__descriptor},
    {FRAME_MPI_EVENT, &hvdrun__mpi_event__descriptor},
    {FRAME_MPI_SIGNAL, &hvdrun__mpi_signal__descriptor},
    {FRAME_NOTIFIED, &hvdrun__notified__descriptor},
    {FRAME_SIGNALLED, &hvdrun__signalled__descriptor},
    {FRAME_ANSWER, &hvdrun__facts__descriptor},
    {FRAME_ANSWER, &hvdrun__probed__descriptor},
    {FRAME_OUTPUT_SHOW, NULL},
    {FRAME_FAREWELL, &hvdrun__farewell__descriptor},
    {FRAME_LINE_OPENED, NULL},
    {FRAME_STALL, &hvdrun__stall__descriptor},
    {FRAME_ANSWER, &hvdrun__usage__descriptor},
    {FRAME_PROGRESS, &hvdrun__progress__descriptor},
    {FRAME_PART, NULL},
    {FRAME_PREPARE, &hvdrun__prepare__descriptor}, /* those of the other direction */
    {FRAME_QUIT, NULL},
};

/* Reads frames until one of this type; false: the driver has hung up, or it does not come. */
static bool listen_for(int fd, uint8_t type)
{
    int patience_ms = type == FRAME_END ? END_PATIENCE_MS : PATIENCE_MS;
    AUTO_BUF struct buf in = BUF_INIT((size_t)2 << 20);
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    struct frame_header header;
    for (;;) {
        while (in.length >= FRAME_HEADER_SIZE) {
            FUZZ_CHECK(frame_header_get((const uint8_t *)buf_text(&in), &header, NULL) == 0);
            if (in.length < FRAME_HEADER_SIZE + header.length)
                break;
            buf_consume(&in, FRAME_HEADER_SIZE + header.length);
            if (header.type == type || header.type == FRAME_END) /* then nothing else comes */
                return header.type == type;
        }
        if (poll(&poll_fd, 1, patience_ms) <= 0)
            return false;
        void *place = buf_reserve(&in, 65536);
        ssize_t got = place == NULL ? 0 : fd_read(fd, place, 65536);
        if (got <= 0)
            return false;
        buf_commit(&in, (size_t)got);
    }
}

static void *play(void *context)
{
    struct peer *peer = context;
    for (size_t i = 0; i < sizeof(peer->segments) / sizeof(peer->segments[0]); i++) {
        struct segment *segment = &peer->segments[i];
        if (segment->after == FRAME_END && segment->bytes.length == 0)
            break; /* it has nothing to say then, and hangs up now */
        if (segment->after != 0 && !listen_for(peer->fd, segment->after))
            break;
        if (segment->bytes.length > 0 &&
            send(peer->fd, buf_text(&segment->bytes), segment->bytes.length, MSG_NOSIGNAL) < 0)
            break;
    }
    shutdown(peer->fd, SHUT_WR);
    return NULL;
}

static void put_hello(struct frames *frames)
{
    Hvdrun__AgentHello hello = HVDRUN__AGENT_HELLO__INIT;
    char *interfaces[] = {"lo 127.0.0.1/8", "eth0 10.0.0.1/24"};
    hello.protocol = FRAME_VERSION;
    hello.version = HVDRUN_VERSION;
    hello.hostname = frames->node == 0 ? "a" : "b";
    hello.boot_id = frames->node == 0 ? "boot-a" : "boot-b";
    hello.machine = "x86_64";
    hello.cpus_allowed = hello.cpus_online = 4;
    hello.interfaces = interfaces;
    hello.n_interfaces = 2;
    frames_put_message(frames, FRAME_HELLO, 0, &hello.base);
}

static void come_up_for_check(struct stage *stage)
{
    for (int i = 0; i < stage->count; i++) {
        struct frames frames = {.out = &stage->peers[i].segments[0].bytes, .node = (uint32_t)i};
        put_hello(&frames);
        stage->peers[i].segments[2].after = FRAME_ASK;
    }
}

static void come_up(struct stage *stage)
{
    for (int i = 0; i < stage->count; i++) {
        struct peer *peer = &stage->peers[i];
        Hvdrun__Ready ready = HVDRUN__READY__INIT;
        struct frames frames = {.out = &peer->segments[0].bytes, .node = (uint32_t)i};
        put_hello(&frames);
        frames.out = &peer->segments[1].bytes;
        peer->segments[1].after = FRAME_PREPARE;
        frames_put_message(&frames, FRAME_READY, 1, &ready.base);
        peer->segments[2].after = FRAME_START;
    }
}

static void write_story(struct stage *stage, struct fuzz_bytes *bytes)
{
    struct frames frames = {.bytes = bytes};
    size_t segment = 2;
    for (int i = 0; i < stage->count; i++)
        stage->peers[i].segments[3].after = FRAME_END;
    while (bytes->left > 0) {
        uint8_t choice = fuzz_u8(bytes);
        int who = (choice >> 5 & 1) % stage->count;
        frames.out = &stage->peers[who].segments[segment].bytes;
        frames.node = (uint32_t)who;
        frames.rank = (uint32_t)(who * 2 + (choice >> 6 & 1));
        if (choice == 255)
            put_hello(&frames);
        else if (choice == 254)
            segment = 3; /* the rest when the job is being ended */
        else
            frames_put_any(&frames, &kinds[choice % (sizeof(kinds) / sizeof(kinds[0]))]);
    }
    for (int i = 0; i < stage->count; i++) {
        uint16_t next = 0;
        for (size_t k = 0; k < SEGMENTS; k++)
            next = frames_number(&stage->peers[i].segments[k].bytes, next);
    }
    frames_clear(&frames);
}

static void set(struct settings *settings, enum option_id id, const char *value)
{
    FUZZ_CHECK(settings_set(settings, id, value, SOURCE_FLAG, "fuzz", NULL) == 0);
}

/* The job: two ranks on each node. */
static int run_driver(const struct stage *stage, struct transport_stream *streams, unsigned mode)
{
    static char *const argv[] = {"hvdrun", "true", NULL};
    static const struct strv nothing = STRV_INIT;
    static const struct check_request check = {.json = false};
    struct settings settings;
    struct host_list hosts = {.count = 0};
    struct app_list apps = {.count = 0};
    struct error err = ERROR_INIT;
    settings_init(&settings);
    set(&settings, OPT_start_timeout, "20s");
    set(&settings, OPT_stdin_, mode & MODE_QUIET ? "none" : "all");
    hosts_parse(stage->count == 2 ? "a:2,b:2" : "a:2", &hosts, NULL);
    strv_add(&app_list_add(&apps)->argv, "true");
    struct plan_request wanted = {.hosts = &hosts, .apps = &apps};
    struct plan *plan = plan_create(&wanted, &err);
    FUZZ_CHECK(plan != NULL);
    struct job_request request = {.settings = &settings,
                                  .started_fd = -1,
                                  .apps = &apps,
                                  .check = mode & MODE_CHECK ? &check : NULL,
                                  .plan = plan,
                                  .hosts = &hosts,
                                  .base_env = &nothing,
                                  .away_env = &nothing,
                                  .knobs = &nothing,
                                  .warnings = &nothing,
                                  .job_id = "fuzz",
                                  .argv = argv,
                                  .streams = streams,
                                  .agent_path = "/nonexistent",
                                  .ssh_module = "/nonexistent",
                                  .tls_module = "/nonexistent",
                                  .wdir = "/",
                                  .begun_ns = clock_mono_ns()};
    int status = driver_run(&request, &err);
    plan_destroy(plan);
    app_list_destroy(&apps);
    hosts_destroy(&hosts);
    settings_destroy(&settings);
    return status;
}

static void open_stage(struct stage *stage, struct transport_stream *streams)
{
    for (int i = 0; i < stage->count; i++) {
        int pair[2];
        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        stage->peers[i].fd = pair[1];
        streams[i] = (struct transport_stream){.read_fd = pair[0], .write_fd = pair[0]};
        for (size_t k = 0; k < SEGMENTS; k++)
            buf_init(&stage->peers[i].segments[k].bytes, FRAMES_MAX + 1024);
    }
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    unsigned mode = fuzz_u8(&bytes);
    struct stage stage = {.count = mode & MODE_TWO ? 2 : 1};
    struct transport_stream streams[NODES];
    pthread_t threads[NODES];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    FUZZ_CHECK(null >= 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO);
    fd_close(&null);
    open_stage(&stage, streams);
    if (mode & MODE_GOOD && mode & MODE_CHECK)
        come_up_for_check(&stage);
    else if (mode & MODE_GOOD)
        come_up(&stage);
    write_story(&stage, &bytes);
    for (int i = 0; i < stage.count; i++)
        FUZZ_CHECK(pthread_create(&threads[i], NULL, play, &stage.peers[i]) == 0);
    int status = run_driver(&stage, streams, mode);
    FUZZ_CHECK(status >= 0 && status <= 255);
    for (int i = 0; i < stage.count; i++) {
        pthread_join(threads[i], NULL);
        fd_close(&stage.peers[i].fd);
        for (size_t k = 0; k < SEGMENTS; k++)
            buf_destroy(&stage.peers[i].segments[k].bytes);
    }
    return 0;
}
