/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host's shell says before the agent is up: noise, answers (MARK stands for the marker that
 * our script has sent), anything. The shell accepts what it gets, and hangs up at the end, which
 * ends the start. If the agent is up, the bytes after its line are frames, and must all be there.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "transport/boot/boot.h"
#include "transport/boot/script.h"

#define MARK '@'
#define FLOOD 0x01 /* stands for FLOOD_SIZE bytes of noise */
#define FLOOD_SIZE 20000
#define SAID_MAX ((size_t)160 << 10)
#define IMAGE_SIZE 5000

struct stage {
    struct fuzz_bytes bytes;
    struct loop *loop;
    struct loop_fd *watch; /* of the host's end */
    int fd;
    struct buf heard, said;
    size_t sent;
    bool up, failed, told;
};

/* The script begins with the marker in two halves: { h_n='...''...' */
static bool find_marker(const struct stage *stage, char *out)
{
    static const char before[] = "{ h_n='";
    const char *text = buf_text(&stage->heard);
    const size_t half = (BOOT_MARKER_ROOM - 1) / 2, begin = sizeof(before) - 1;
    if (stage->heard.length < begin + 2 * half + 2)
        return false;
    FUZZ_CHECK(strncmp(text, before, begin) == 0);
    memcpy(out, text + begin, half);
    memcpy(out + half, text + begin + half + 2, half);
    out[2 * half] = '\0';
    return true;
}

static void write_answers(struct stage *stage, const char *marker)
{
    struct fuzz_bytes *bytes = &stage->bytes;
    char *noise AUTO_FREE = mem_alloc(FLOOD_SIZE);
    memset(noise, 'x', FLOOD_SIZE);
    while (bytes->left > 0) {
        char byte = (char)fuzz_u8(bytes);
        if (byte == MARK)
            buf_puts(&stage->said, marker);
        else if (byte == FLOOD)
            buf_append(&stage->said, noise, FLOOD_SIZE);
        else
            buf_putc(&stage->said, byte);
    }
}

/* Says what there is room for. */
static void speak(struct stage *stage)
{
    size_t left = stage->said.length - stage->sent;
    ssize_t put =
        send(stage->fd, buf_text(&stage->said) + stage->sent, left, MSG_DONTWAIT | MSG_NOSIGNAL);
    stage->sent += put > 0 ? (size_t)put : 0;
    if (stage->sent < stage->said.length)
        return;
    shutdown(stage->fd, SHUT_WR);
    loop_fd_watch(stage->watch, LOOP_READ);
}

static void host_ready(void *context, int what)
{
    struct stage *stage = context;
    char bytes[16384], marker[BOOT_MARKER_ROOM];
    ssize_t got = recv(stage->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got == 0)
        loop_fd_watch(stage->watch, 0);
    if (!stage->told && got > 0)
        buf_append(&stage->heard, bytes, (size_t)got);
    if (!stage->told && find_marker(stage, marker)) {
        stage->told = true;
        write_answers(stage, marker);
        loop_fd_watch(stage->watch, LOOP_READ | LOOP_WRITE);
    }
    if ((what & LOOP_WRITE) != 0 && stage->told)
        speak(stage);
}

static void stage_reached(void *context, enum transport_stage stage)
{
    (void)context;
    FUZZ_CHECK(stage == STAGE_START || stage == STAGE_SEND || stage == STAGE_AGENT);
}

static void up(void *context)
{
    struct stage *stage = context;
    FUZZ_CHECK(!stage->up && !stage->failed);
    stage->up = true;
    loop_stop(stage->loop);
}

static void failed(void *context, enum transport_stage reached, const char *why)
{
    struct stage *stage = context;
    (void)reached;
    FUZZ_CHECK(!stage->up && !stage->failed && why[0] != '\0');
    for (; *why != '\0'; why++)
        FUZZ_CHECK((unsigned char)*why >= ' ' && *why != 0x7f);
    stage->failed = true;
    loop_stop(stage->loop);
}

/* What is left on the driver's end begins behind a newline of what was said. */
static void check_rest(const struct stage *stage, int fd)
{
    struct buf rest AUTO_BUF = BUF_INIT(SAID_MAX);
    char bytes[4096];
    ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    for (; got > 0; got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT))
        buf_append(&rest, bytes, (size_t)got);
    FUZZ_CHECK(rest.length < stage->sent);
    size_t begin = stage->sent - rest.length;
    FUZZ_CHECK(buf_text(&stage->said)[begin - 1] == '\n');
    FUZZ_CHECK(memcmp(buf_text(&stage->said) + begin, buf_text(&rest), rest.length) == 0);
}

FUZZ_TARGET
{
    static const uint8_t program[IMAGE_SIZE] = {0x7f, 'E', 'L', 'F'};
    struct agent_image image = {
        .bytes = program, .length = sizeof(program), .facts = {"x86_64", 2, 17}};
    static const struct boot_events events = {stage_reached, up, failed};
    struct stage stage = {
        .bytes = {data, size}, .heard = BUF_INIT((size_t)1 << 16), .said = BUF_INIT(SAID_MAX)};
    int ends[2];
    stage.loop = loop_create(NULL);
    FUZZ_CHECK(stage.loop != NULL && fd_socketpair(ends) == 0);
    stage.fd = ends[1];
    stage.watch = loop_fd_create(stage.loop, ends[1], host_ready, &stage);
    loop_fd_watch(stage.watch, LOOP_READ);
    const struct boot_config config = {
        .loop = stage.loop, .fd = ends[0], .image = &image, .unique = "job-0", .limit_ms = 30000};
    struct boot *boot = boot_create(&config, &events, &stage);
    loop_run(stage.loop);
    FUZZ_CHECK(stage.up != stage.failed);
    FUZZ_CHECK(stage.failed || boot_heard(boot)->answered);
    if (stage.up)
        check_rest(&stage, ends[0]);
    boot_destroy(boot);
    loop_fd_destroy(stage.watch);
    loop_destroy(stage.loop);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    buf_destroy(&stage.heard);
    buf_destroy(&stage.said);
    return 0;
}
