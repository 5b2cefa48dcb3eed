/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that dial the driver and claim any name, while the driver waits for agents or no longer
 * waits. For each name of this job, only the first client that claims it gets in. TLS is a fake
 * (fake_tls.h), the connections are real, on loopback.
 */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "fake_tls.h"
#include "transport/dial_back.h"

#define CLAIMS 4
#define GUESTS 2
#define DIALS_MAX 8
#define TURNS 4 /* of the loop, for each thing that happens */

struct waiting {
    struct dial_back_claim *claim;
    char name[2];
    int fd;
    bool came, failed;
};

struct stage {
    struct fuzz_bytes bytes;
    struct loop *loop;
    struct dial_back *dial;
    struct waiting waiting[CLAIMS];
    int dials[DIALS_MAX], dial_count;
};

static void note(void *context, enum log_level level, const char *line)
{
    (void)context;
    FUZZ_CHECK(level <= LOG_INFO && line[0] != '\0');
}

static void up(void *context, const struct transport_stream *stream)
{
    struct waiting *waiting = context;
    FUZZ_CHECK(!waiting->came && !waiting->failed && stream->read_fd >= 0);
    FUZZ_CHECK(strcmp(stream->peer, "127.0.0.1") == 0);
    waiting->came = true;
    waiting->fd = stream->read_fd;
}

static void broken(void *context, const char *why)
{
    FUZZ_CHECK(((struct waiting *)context)->came && why != NULL);
}

static void failed(void *context, const char *why)
{
    struct waiting *waiting = context;
    FUZZ_CHECK(!waiting->came && !waiting->failed && why[0] != '\0');
    waiting->failed = true;
}

static void forget(struct waiting *waiting)
{
    dial_back_forget(waiting->claim);
    waiting->claim = NULL;
    fd_close(&waiting->fd);
}

static void expect(struct stage *stage, uint8_t choice)
{
    static const struct dial_back_events events = {up, broken, failed};
    struct waiting *waiting = &stage->waiting[choice % CLAIMS];
    if (waiting->claim != NULL) {
        forget(waiting);
        return;
    }
    *waiting = (struct waiting){.name = {(char)('a' + choice % CLAIMS), '\0'}, .fd = -1};
    waiting->claim = dial_back_expect(stage->dial, waiting->name, &events, waiting);
}

/* It is reset at its end, so that no port is kept. */
static void dial(struct stage *stage)
{
    const struct linger reset = {.l_onoff = 1};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)dial_back_port(stage->dial))};
    if (stage->dial_count == DIALS_MAX)
        return;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0);
    FUZZ_CHECK(connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0);
    FUZZ_CHECK(fd_send_all(fd, "x", 1) == 0);
    stage->dials[stage->dial_count++] = fd;
}

static void stop(void *context)
{
    loop_stop(context);
}

static void take_turns(struct stage *stage)
{
    for (int i = 0; i < TURNS; i++) {
        loop_defer(stage->loop, stop, stage->loop);
        loop_run(stage->loop);
    }
}

static void play(struct stage *stage)
{
    while (stage->bytes.left > 0) {
        uint8_t choice = fuzz_u8(&stage->bytes);
        if ((choice & 0x60) == 0)
            expect(stage, choice);
        else
            dial(stage);
        if ((choice & 0x80) == 0)
            take_turns(stage);
    }
    take_turns(stage);
}

FUZZ_TARGET
{
    struct stage stage = {.bytes = {data, size}};
    struct error err = ERROR_INIT;
    stage.loop = loop_create(&err);
    struct dial_back_config config = {.loop = stage.loop,
                                      .module = fake_tls(&stage.bytes),
                                      .job_id = "job",
                                      .dead_after_ms = 30000,
                                      .guests = GUESTS,
                                      .note = note};
    stage.dial = dial_back_create(&config, &err);
    FUZZ_CHECK(stage.dial != NULL);
    for (uint8_t i = 0; i < CLAIMS; i++)
        expect(&stage, i);
    play(&stage);
    for (int i = 0; i < stage.dial_count; i++)
        fd_close(&stage.dials[i]);
    for (size_t i = 0; i < CLAIMS; i++) {
        if (stage.waiting[i].claim != NULL)
            forget(&stage.waiting[i]);
    }
    dial_back_destroy(stage.dial);
    loop_destroy(stage.loop);
    return 0;
}
