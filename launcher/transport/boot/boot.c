/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's side of the dialogue in transport/boot/script.h. Lines are taken from the stream one
 * by one, by a look first (MSG_PEEK), so that never a byte of the first frame is taken with them.
 */
#include "transport/boot/boot.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/plain.h"
#include "base/status.h"
#include "base/text.h"
#include "transport/boot/inside_test.h"
#include "transport/boot/script.h"

/*
 * Makes what a host has printed fit for one line of a message: control characters could do anything
 * to the user's terminal.
 */
void printable_line(const char *bytes, size_t length, char out[PRINTABLE_ROOM])
{
    size_t used = 0;
    text_trim(&bytes, &length);
    for (size_t i = 0; i < length && used + 5 < PRINTABLE_ROOM;) {
        const unsigned char *at = (const unsigned char *)bytes + i;
        size_t wide = plain_character(bytes + i, length - i);
        bool is_high = wide == 2 && at[0] == 0xc2 && at[1] < 0xa0; /* controls of two bytes */
        if (wide > 1 && !is_high) {
            memcpy(out + used, at, wide);
            used += wide;
            i += wide;
            continue;
        }
        out[used++] = at[0] == '\t' ? ' ' : at[0] >= 0x20 && at[0] < 0x7f ? (char)at[0] : '?';
        i++;
    }
    out[used] = '\0';
}

bool login_end_is_plain(int status)
{
    return status >= 0 && status < STATUS_NOT_EXECUTABLE;
}

char *login_end_text(int status, const char *said)
{
    return mem_printf("the login ended with exit status %d before the host ran %s: most likely a "
                      "login file there (.bashrc, .cshrc) exits, or the account has a forced "
                      "command; 'ssh HOST true' must succeed and print nothing%s%s",
                      status, BOOT_COMMAND, said[0] == '\0' ? "" : "; the host said: ", said);
}

/* The dialogue. */

#define NOISE_MAX ((size_t)65536) /* between two answers */
#define PEEK ((size_t)4096)
#define CHUNK ((size_t)262144) /* of the image, for one turn of the loop */
#define PLACES_MAX ((size_t)1024)

_Static_assert(BOOT_NOISE_ROOM == PRINTABLE_ROOM, "noise is a printable line");

struct boot {
    struct boot_config config;
    const struct boot_events *events;
    void *context;
    struct loop_fd *watch;
    struct loop_timer *deadline;
    char marker[BOOT_MARKER_ROOM];
    enum transport_stage stage;
    bool begun;
    bool has_host;
    struct boot_host host;
    struct buf line;   /* what has come of the present one */
    size_t skipped;    /* noise since the last answer */
    struct buf out;    /* words to send */
    size_t image_left; /* bytes of the image to send after them */
    struct buf places; /* that will not do, and why */
    struct boot_heard heard;
};

static void set_stage(struct boot *boot, enum transport_stage stage)
{
    boot->stage = stage;
    loop_timer_set(boot->deadline, boot->config.limit_ms);
    boot->events->stage(boot->context, stage);
}

/* The last act: the owner may destroy us in it. */
static void fail(struct boot *boot, const char *why)
{
    loop_fd_watch(boot->watch, 0);
    loop_timer_clear(boot->deadline);
    boot->events->failed(boot->context, boot->stage, why);
}

/* `what`, and the last thing that the host has printed. */
static void fail_with_noise(struct boot *boot, const char *what)
{
    char *why AUTO_FREE = mem_printf(
        "%s%s%s", what, boot->heard.noise[0] == '\0' ? "" : "; the host said: ", boot->heard.noise);
    fail(boot, why);
}

static void watch(struct boot *boot)
{
    bool writing = boot->out.length > 0 || boot->image_left > 0;
    loop_fd_watch(boot->watch, LOOP_READ | (writing ? LOOP_WRITE : 0));
}

static void add_noise(struct boot *boot, const char *bytes, size_t length)
{
    char text[PRINTABLE_ROOM];
    printable_line(bytes, length, text);
    if (text[0] != '\0')
        memcpy(boot->heard.noise, text, sizeof(text));
}

/* Answers, each with what follows its word. They return false after an event that ends the boot. */

static bool on_host(struct boot *boot, const char *text)
{
    char clean[PRINTABLE_ROOM];
    printable_line(text, strlen(text), clean);
    boot_host_parse(clean, &boot->host);
    boot->has_host = true;
    return true;
}

static bool on_terminal(struct boot *boot, const char *rest)
{
    (void)rest;
    fail_with_noise(boot,
                    "the command gives the host's shell a terminal instead of a plain stream; "
                    "remove the option that does so (ssh -tt; -t of kubectl and docker)");
    return false;
}

static bool on_need(struct boot *boot, const char *installed)
{
    struct error err = ERROR_INIT;
    if (!boot->has_host)
        return true;
    if (boot_host_check(&boot->host, boot->config.image, &err) == 0) {
        buf_puts(&boot->out, BOOT_SEND);
    } else if (installed[0] == '/') {
        buf_puts(&boot->out, BOOT_USE);
    } else {
        fail(boot, err.text);
        return false;
    }
    watch(boot);
    return true;
}

static bool on_ready(struct boot *boot, const char *rest)
{
    (void)rest;
    if (boot->image_left > 0)
        return true;
    boot->image_left = boot->config.image->length;
    set_stage(boot, STAGE_SEND);
    watch(boot);
    return true;
}

static bool on_no(struct boot *boot, const char *place)
{
    char text[PRINTABLE_ROOM];
    printable_line(place, strlen(place), text);
    buf_printf(&boot->places, "%s%s", boot->places.length > 0 ? "; " : "", text);
    return true;
}

static bool on_fail(struct boot *boot, const char *rest)
{
    (void)rest;
    char *why AUTO_FREE = mem_printf(
        "cannot store and start hvdrun-agent on the host: %s; make one of these folders usable, or "
        "name another one there with TMPDIR or XDG_CACHE_HOME",
        buf_text(&boot->places));
    fail(boot, why);
    return false;
}

static bool on_run(struct boot *boot, const char *rest)
{
    (void)rest;
    set_stage(boot, STAGE_AGENT);
    return true;
}

static bool on_agent(struct boot *boot, const char *rest)
{
    (void)rest;
    loop_fd_watch(boot->watch, 0);
    loop_timer_clear(boot->deadline);
    boot->events->up(boot->context);
    return false;
}

static bool on_answer(struct boot *boot, const char *text)
{
    static const struct {
        const char *word;
        bool (*act)(struct boot *boot, const char *rest);
    } answers[] = {
        {"host", on_host}, {"terminal", on_terminal}, {"need", on_need},   {"ready", on_ready},
        {"no", on_no},     {"fail", on_fail},         {"agent", on_agent}, {"run", on_run}};
    size_t length = strcspn(text, " ");
    boot->heard.answered = true;
    boot->skipped = 0;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (strlen(answers[i].word) == length && memcmp(text, answers[i].word, length) == 0)
            return answers[i].act(boot, text + length + (text[length] == ' '));
    }
    return true;
}

/* A whole line; false: the boot is over. */
static bool on_line(struct boot *boot)
{
    size_t length = boot->line.length; /* noise may hold zero bytes */
    char *bytes AUTO_FREE = mem_dup(buf_text(&boot->line), length + 1);
    buf_clear(&boot->line);
    if (length > 0 && bytes[length - 1] == '\r')
        bytes[--length] = '\0';
    char *mark = memmem(bytes, length, boot->marker, strlen(boot->marker));
    size_t before = mark != NULL ? (size_t)(mark - bytes) : length;
    add_noise(boot, bytes, before);
    if (mark == NULL)
        return true;
    const char *answer = mark + strlen(boot->marker);
    return on_answer(boot, *answer == ' ' ? answer + 1 : answer);
}

/* The stream */

static void ended(struct boot *boot)
{
    boot->heard.cut = true;
    add_noise(boot, buf_text(&boot->line), boot->line.length);
    if (!boot->heard.answered)
        fail_with_noise(boot, "the connection ended before a shell on the host answered");
    else if (boot->stage == STAGE_AGENT)
        fail_with_noise(boot, "hvdrun-agent ended as soon as it started");
    else if (boot->stage == STAGE_SEND)
        fail_with_noise(boot, "the connection ended while hvdrun was sending hvdrun-agent");
    else
        fail_with_noise(boot, "the host's shell ended before it started hvdrun-agent");
}

/* Of a call that does not wait: there is nothing to do now. */
static bool is_for_later(ssize_t moved)
{
    return moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

/* Takes what there is of a line from the stream. 1: some; 0: nothing yet; -1: the end. */
static int take(struct boot *boot, bool *whole)
{
    char bytes[PEEK];
    ssize_t seen = recv(boot->config.fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
    if (seen <= 0)
        return is_for_later(seen) ? 0 : -1;
    const char *newline = memchr(bytes, '\n', (size_t)seen);
    size_t length = newline != NULL ? (size_t)(newline - bytes) + 1 : (size_t)seen;
    seen = recv(boot->config.fd, bytes, length, MSG_DONTWAIT);
    if (seen <= 0)
        return is_for_later(seen) ? 0 : -1;
    *whole = newline != NULL && (size_t)seen == length;
    boot->skipped += (size_t)seen;
    buf_append(&boot->line, bytes, *whole ? length - 1 : (size_t)seen);
    return 1;
}

static void read_some(struct boot *boot)
{
    for (;;) {
        bool whole = false;
        int taken = take(boot, &whole);
        if (taken < 0)
            ended(boot);
        if (taken <= 0)
            return;
        if (whole && !on_line(boot))
            return;
        if (boot->skipped > NOISE_MAX) {
            fail_with_noise(boot, "the host printed too much before its shell answered: its login "
                                  "files must print less in shells without a terminal");
            return;
        }
    }
}

static ssize_t send_some(struct boot *boot, const void *bytes, size_t length)
{
    return send(boot->config.fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void write_some(struct boot *boot)
{
    ssize_t sent = 1;
    if (boot->out.length > 0) {
        sent = send_some(boot, buf_text(&boot->out), boot->out.length);
        if (sent > 0)
            buf_consume(&boot->out, (size_t)sent);
    } else if (boot->image_left > 0) {
        const struct agent_image *image = boot->config.image;
        size_t length = boot->image_left < CHUNK ? boot->image_left : CHUNK;
        sent = send_some(boot, image->bytes + (image->length - boot->image_left), length);
        if (sent > 0) {
            boot->image_left -= (size_t)sent;
            loop_timer_set(boot->deadline, boot->config.limit_ms); /* slow is not dead */
        }
    }
    if (sent < 0 && !is_for_later(sent)) {
        /* The other side is gone; the end of what it printed will say why. */
        buf_clear(&boot->out);
        boot->image_left = 0;
    }
    watch(boot);
}

static void ready(void *context, int what)
{
    struct boot *boot = context;
    if (!boot->begun) {
        boot->begun = true;
        set_stage(boot, STAGE_START);
    }
    if ((what & LOOP_WRITE) != 0)
        write_some(boot);
    if ((what & LOOP_READ) != 0)
        read_some(boot);
}

static void too_late(void *context)
{
    struct boot *boot = context;
    double seconds = (double)boot->config.limit_ms / 1000;
    char *what AUTO_FREE = NULL;
    if (!boot->heard.answered)
        what = mem_printf("no shell on the host has answered for %.1f s", seconds);
    else if (boot->stage == STAGE_SEND)
        what = mem_printf("the host has not accepted any data of hvdrun-agent for %.1f s", seconds);
    else
        what =
            mem_printf("%s has sent nothing for %.1f s",
                       boot->stage == STAGE_AGENT ? "hvdrun-agent" : "the host's shell", seconds);
    fail_with_noise(boot, what);
}

struct boot *boot_create(const struct boot_config *config, const struct boot_events *events,
                         void *context)
{
    struct boot *boot = MEM_NEW((struct boot){.config = *config,
                                              .events = events,
                                              .context = context,
                                              .stage = STAGE_START,
                                              .line = BUF_INIT(NOISE_MAX + 2 * PEEK),
                                              .out = BUF_INIT(BOOT_SCRIPT_MAX),
                                              .places = BUF_INIT(PLACES_MAX)});
    agent_image_hash(config->image);
    boot_marker(boot->marker);
    boot_script(config->image, boot->marker, config->unique, &boot->out);
    boot->watch = loop_fd_create(config->loop, config->fd, ready, boot);
    boot->deadline = loop_timer_create(config->loop, too_late, boot);
    loop_timer_set(boot->deadline, config->limit_ms);
    watch(boot);
    return boot;
}

void boot_destroy(struct boot *boot)
{
    if (boot == NULL)
        return;
    loop_timer_destroy(boot->deadline);
    loop_fd_destroy(boot->watch);
    buf_destroy(&boot->line);
    buf_destroy(&boot->out);
    buf_destroy(&boot->places);
    free(boot);
}

const struct boot_heard *boot_heard(const struct boot *boot)
{
    return &boot->heard;
}
