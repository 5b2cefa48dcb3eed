/* SPDX-License-Identifier: Apache-2.0 */
/* A real agent in a process of its own, and a driver that says to it what a test wants. */
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_config.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/link.h"
#include "loop_fixture.h"
#include "wire/control.pb-c.h"
#include "wire/topic.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define FAKE_LEAKS() (__lsan_do_recoverable_leak_check() != 0)
#else
#define FAKE_LEAKS() false
#endif

#define NO_SEAT UINT32_MAX

struct note {
    uint8_t type;
    uint32_t epoch;
    uint8_t *body; /* NULL: it has been taken */
    size_t length;
};

struct fake_driver {
    struct loop *loop;
    struct link *link;
    pid_t agent;
    bool closed;
    bool silent;        /* it answers no heartbeat */
    struct note *notes; /* all frames that were heard, but not heartbeats and output */
    size_t count;
    struct buf output; /* of all workers, "EPOCH.SEAT:bytes" */
    int beats;
    /* What is waited for: any frame when type is 0. */
    uint8_t type;
    uint32_t epoch, seat;
    const char *text;
};

/* Of a worker in PREPARE. */
struct seat_plan {
    uint32_t seat, rank, local_rank, slot;
};

struct crew_plan {
    const char *script; /* of /bin/sh */
    const char *mpi;    /* NULL: none */
    struct seat_plan seats[4];
    size_t count;
    uint32_t size; /* 0: count; also of the node */
    uint32_t restart_count;
    bool stdin_pipes; /* of all workers */
    bool mpi_controller;
    bool held_ports;
};

/* Whose frame is it? */
static inline uint32_t note_seat(const struct note *note)
{
    uint32_t seat = NO_SEAT;
    if (note->type == FRAME_EXITED) {
        Hvdrun__Exited *message = hvdrun__exited__unpack(NULL, note->length, note->body);
        seat = message->seat;
        hvdrun__exited__free_unpacked(message, NULL);
    } else if (note->type == FRAME_FINISHED) {
        Hvdrun__Finished *message = hvdrun__finished__unpack(NULL, note->length, note->body);
        seat = message->seat;
        hvdrun__finished__free_unpacked(message, NULL);
    } else if (note->type == FRAME_STARTED) {
        Hvdrun__Started *message = hvdrun__started__unpack(NULL, note->length, note->body);
        seat = message->n_seats > 0 ? message->seats[0] : NO_SEAT;
        hvdrun__started__free_unpacked(message, NULL);
    }
    return seat;
}

static inline bool fake_is_wanted(const struct fake_driver *driver, const struct note *note)
{
    return note->body != NULL && note->type == driver->type && note->epoch == driver->epoch &&
           (driver->seat == NO_SEAT || note_seat(note) == driver->seat);
}

static inline void fake_output(struct fake_driver *driver, uint32_t epoch, const uint8_t *body,
                               uint32_t length)
{
    struct frame_data data;
    assert_int_equal(frame_data_get(body, length, &data, NULL), 0);
    if (length == FRAME_DATA_PREFIX)
        return;
    buf_printf(&driver->output, "%u.%u:", epoch, data.seat);
    buf_append(&driver->output, body + FRAME_DATA_PREFIX, length - FRAME_DATA_PREFIX);
}

static inline void fake_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct fake_driver *driver = context;
    if (header->type == FRAME_HEARTBEAT) {
        driver->beats++;
        if (driver->silent)
            return;
        link_send(driver->link, FRAME_HEARTBEAT_REPLY, header->epoch, body, header->length);
    } else if (header->type == FRAME_OUTPUT) {
        fake_output(driver, header->epoch, body, header->length);
        if (driver->text != NULL && strstr(buf_text(&driver->output), driver->text) != NULL)
            loop_stop(driver->loop);
    } else {
        driver->notes = mem_resize_array(driver->notes, driver->count + 1, sizeof(*driver->notes));
        struct note *note = &driver->notes[driver->count++];
        *note = (struct note){header->type, header->epoch, mem_alloc(header->length + 1),
                              header->length};
        memcpy(note->body, body, header->length);
        if (fake_is_wanted(driver, note))
            loop_stop(driver->loop);
    }
}

static inline void fake_closed(void *context, const char *reason)
{
    struct fake_driver *driver = context;
    (void)reason;
    driver->closed = true;
    loop_stop(driver->loop);
}

/* The frame of this epoch, the first that was not taken yet; of this seat unless NO_SEAT. Its body
 * is the caller's. Fails when it does not come. */
static inline struct note fake_take(struct fake_driver *driver, enum frame_type type,
                                    uint32_t epoch, uint32_t seat)
{
    driver->type = (uint8_t)type;
    driver->epoch = epoch;
    driver->seat = seat;
    for (int tries = 0; tries < 2; tries++) {
        for (size_t i = 0; i < driver->count; i++) {
            struct note note = driver->notes[i];
            if (!fake_is_wanted(driver, &note))
                continue;
            driver->notes[i].body = NULL;
            driver->type = 0;
            return note;
        }
        if (tries == 0)
            run_loop(driver->loop);
    }
    fail_msg("no %s of epoch %u", frame_name((uint8_t)type), epoch);
    return (struct note){0};
}

static inline void fake_expect(struct fake_driver *driver, enum frame_type type, uint32_t epoch,
                               uint32_t seat)
{
    free(fake_take(driver, type, epoch, seat).body);
}

/* Has such a frame come that was not taken yet? */
static inline bool fake_has(struct fake_driver *driver, enum frame_type type, uint32_t epoch,
                            uint32_t seat)
{
    bool has = false;
    driver->type = (uint8_t)type;
    driver->epoch = epoch;
    driver->seat = seat;
    for (size_t i = 0; i < driver->count; i++)
        has = has || fake_is_wanted(driver, &driver->notes[i]);
    driver->type = 0;
    return has;
}

/* Until the workers have written this, among what they wrote. */
static inline void fake_read(struct fake_driver *driver, const char *text)
{
    driver->text = text;
    if (strstr(buf_text(&driver->output), text) == NULL)
        run_loop(driver->loop);
    driver->text = NULL;
}

static inline void fake_send(struct fake_driver *driver, enum frame_type type, uint32_t epoch,
                             const ProtobufCMessage *message)
{
    if (message == NULL)
        link_send(driver->link, type, epoch, NULL, 0);
    else
        link_send_message(driver->link, type, epoch, message);
}

/* Asks about a topic, under this number. */
static inline void fake_ask(struct fake_driver *driver, const struct topic *topic,
                            uint32_t question, const ProtobufCMessage *request)
{
    Hvdrun__Ask message = HVDRUN__ASK__INIT;
    message.topic = topic->number;
    message.question = question;
    message.request = message_pack(request);
    fake_send(driver, FRAME_ASK, 0, &message.base);
    free(message.request.data);
}

/* The next answer: it is to this question, and all of it or the last piece unless `more`. Free it
 * with message_free(). `epoch`: the agent's newest. */
static inline ProtobufCMessage *fake_answer(struct fake_driver *driver, const struct topic *topic,
                                            uint32_t question, uint32_t epoch, bool more)
{
    struct note note = fake_take(driver, FRAME_ANSWER, epoch, NO_SEAT);
    Hvdrun__Answer *message = hvdrun__answer__unpack(NULL, note.length, note.body);
    free(note.body);
    assert_non_null(message);
    assert_int_equal(message->question, question);
    assert_int_equal(message->more, more);
    ProtobufCMessage *answer =
        message_read(topic->answer, message->answer.data, message->answer.len);
    assert_non_null(answer);
    hvdrun__answer__free_unpacked(message, NULL);
    return answer;
}

/* All that was said before is known to the agent, and its answers have come. */
static inline void fake_settle(struct fake_driver *driver)
{
    driver->type = FRAME_HEARTBEAT_REPLY;
    Hvdrun__Heartbeat beat = HVDRUN__HEARTBEAT__INIT;
    beat.sent_ns = 1;
    link_send_message(driver->link, FRAME_HEARTBEAT, 0, &beat.base);
    for (bool heard = false; !heard;) {
        struct note note = {0};
        for (size_t i = 0; i < driver->count && !heard; i++) {
            note = driver->notes[i];
            heard = note.body != NULL && note.type == FRAME_HEARTBEAT_REPLY;
            if (heard)
                driver->notes[i].body = NULL;
        }
        if (heard)
            free(note.body);
        else
            run_turns(driver->loop, 1);
    }
    driver->type = 0;
}

static inline _Noreturn void fake_agent(int read_fd, int write_fd)
{
    sigset_t mask;
    sigemptyset(&mask);
    struct agent_config config = {.read_fd = read_fd,
                                  .write_fd = write_fd,
                                  .module_dir = HVDRUN_MODULES,
                                  .mask = &mask,
                                  .keeper_fd = -1};
    int status = agent_run(&config);
    _exit(FAKE_LEAKS() ? 99 : status);
}

/* What the agent reads and writes, and what the driver does: each two may be one. */
static inline void fake_begin(struct fake_driver *driver, const int theirs[2], const int ours[2])
{
    static const struct link_ops ops = {.frame = fake_frame, .closed = fake_closed};
    signal(SIGPIPE, SIG_IGN);
    *driver = (struct fake_driver){.seat = NO_SEAT};
    driver->agent = fork();
    assert_true(driver->agent >= 0);
    if (driver->agent == 0) {
        close(ours[0]);
        close(ours[1]);
        fake_agent(theirs[0], theirs[1]);
    }
    close(theirs[0]);
    close(theirs[1]);
    buf_init(&driver->output, 1 << 20);
    driver->loop = loop_create(NULL);
    driver->link = link_create(driver->loop, ours[0], ours[1], &ops, driver, NULL);
    assert_non_null(driver->link);
}

/* `probe`: words of --preempt-probe, asked every 100 ms; NULL: none. `timeout_ms`: of silence. */
static inline void fake_welcome(struct fake_driver *driver, char **probe, size_t words,
                                uint32_t timeout_ms)
{
    fake_expect(driver, FRAME_HELLO, 0, NO_SEAT);
    Hvdrun__Welcome welcome = HVDRUN__WELCOME__INIT;
    Hvdrun__Credit credit = HVDRUN__CREDIT__INIT;
    welcome.job_id = (char *)"job";
    welcome.log_level = LOG_WARNING;
    welcome.node_timeout_ms = timeout_ms;
    welcome.grace_ms = 500;
    welcome.drain_ms = 200;
    welcome.preempt_probe = probe;
    welcome.n_preempt_probe = words;
    welcome.preempt_period_ms = 100;
    credit.bytes = UINT32_MAX;
    fake_send(driver, FRAME_WELCOME, 0, &welcome.base);
    fake_send(driver, FRAME_OUTPUT_CREDIT, 0, &credit.base);
}

static inline void fake_open_as(struct fake_driver *driver, char **probe, size_t words,
                                uint32_t timeout_ms)
{
    int pair[2];
    assert_int_equal(fd_socketpair(pair), 0);
    fake_begin(driver, (int[]){pair[0], pair[0]}, (int[]){pair[1], pair[1]});
    fake_welcome(driver, probe, words, timeout_ms);
}

/* As behind an sshd. Returns the pipe to the agent: a descriptor of the link. */
static inline int fake_open_pipes(struct fake_driver *driver)
{
    int there[2], back[2];
    assert_int_equal(fd_pipe(there), 0);
    assert_int_equal(fd_pipe(back), 0);
    fake_begin(driver, (int[]){there[0], back[1]}, (int[]){back[0], there[1]});
    fake_welcome(driver, NULL, 0, 60000);
    return there[1];
}

static inline void fake_open_probe(struct fake_driver *driver, char **probe, size_t words)
{
    fake_open_as(driver, probe, words, 60000);
}

static inline void fake_open(struct fake_driver *driver)
{
    fake_open_probe(driver, NULL, 0);
}

/* The agent has ended, or does so now; its exit status. */
static inline int fake_wait(const struct fake_driver *driver)
{
    int status;
    assert_int_equal(waitpid(driver->agent, &status, 0), driver->agent);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void fake_close(struct fake_driver *driver)
{
    link_destroy(driver->link);
    run_turns(driver->loop, 1);
    loop_destroy(driver->loop);
    for (size_t i = 0; i < driver->count; i++)
        free(driver->notes[i].body);
    free(driver->notes);
    buf_destroy(&driver->output);
}

static inline void fake_quit(struct fake_driver *driver)
{
    fake_send(driver, FRAME_QUIT, 0, NULL);
    while (!driver->closed)
        run_loop(driver->loop);
    assert_int_equal(fake_wait(driver), 0);
    fake_close(driver);
}

static inline void fake_prepare(struct fake_driver *driver, uint32_t epoch,
                                const struct crew_plan *plan)
{
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)plan->script};
    char *env[] = {(char *)"PATH=/usr/bin:/bin"};
    char *hosts[] = {(char *)"node"};
    uint32_t size = plan->size > 0 ? plan->size : (uint32_t)plan->count;
    uint32_t seats[4];
    Hvdrun__App app = HVDRUN__APP__INIT;
    Hvdrun__Worker workers[4];
    Hvdrun__Worker *list[4];
    Hvdrun__App *apps[] = {&app};
    Hvdrun__Prepare message = HVDRUN__PREPARE__INIT;
    app.argv = argv;
    app.n_argv = 3;
    app.np = size;
    app.mpi = (char *)(plan->mpi == NULL ? "none" : plan->mpi);
    for (size_t i = 0; i < plan->count; i++) {
        workers[i] = (Hvdrun__Worker)HVDRUN__WORKER__INIT;
        workers[i].seat = seats[i] = plan->seats[i].seat;
        workers[i].rank = workers[i].app_rank = plan->seats[i].rank;
        workers[i].local_rank = plan->seats[i].local_rank;
        workers[i].slot = plan->seats[i].slot;
        workers[i].cross_size = 1;
        list[i] = &workers[i];
    }
    message.size = message.local_size = size;
    message.host = hosts[0];
    message.hosts = hosts;
    uint32_t host_ranks[] = {size, 1}; /* packed (wire/packing.h) */
    message.host_ranks = host_ranks;
    message.app_sizes = &size;
    message.n_host_ranks = 2;
    message.n_hosts = message.n_app_sizes = 1;
    message.apps = apps;
    message.n_apps = 1;
    message.workers = list;
    message.n_workers = plan->count;
    message.base_env = env;
    message.n_base_env = 1;
    message.pty_seat = -1;
    message.restart_count = plan->restart_count;
    message.elastic = true;
    message.mpi_controller = plan->mpi_controller;
    message.wants_master = message.hold_port = plan->held_ports;
    message.stdin_seats = seats;
    message.n_stdin_seats = plan->stdin_pipes ? plan->count : 0;
    fake_send(driver, FRAME_PREPARE, epoch, &message.base);
}

static inline void fake_start(struct fake_driver *driver, uint32_t epoch)
{
    struct note note = fake_take(driver, FRAME_READY, epoch, NO_SEAT);
    Hvdrun__Ready *ready = hvdrun__ready__unpack(NULL, note.length, note.body);
    Hvdrun__Start start = HVDRUN__START__INIT;
    assert_string_equal(ready->problem, "");
    start.master_addr = (char *)"127.0.0.1";
    start.master_port = ready->master_port;
    fake_send(driver, FRAME_START, epoch, &start.base);
    hvdrun__ready__free_unpacked(ready, NULL);
    free(note.body);
}

static inline void fake_run(struct fake_driver *driver, uint32_t epoch,
                            const struct crew_plan *plan)
{
    fake_prepare(driver, epoch, plan);
    fake_start(driver, epoch);
}

/* The end of an epoch, with all that belongs to it. */
static inline void fake_end(struct fake_driver *driver, uint32_t epoch, int signal)
{
    Hvdrun__End end = HVDRUN__END__INIT;
    end.signal = signal;
    end.grace_ms = 10000;
    fake_send(driver, FRAME_END, epoch, &end.base);
    fake_expect(driver, FRAME_KILLING, epoch, NO_SEAT);
    fake_expect(driver, FRAME_ENDED, epoch, NO_SEAT);
}

static inline void fake_end_worker(struct fake_driver *driver, uint32_t epoch, uint32_t seat,
                                   int signal, uint32_t grace_ms)
{
    Hvdrun__EndWorker end = HVDRUN__END_WORKER__INIT;
    end.seat = seat;
    end.signal = signal;
    end.grace_ms = grace_ms;
    fake_send(driver, FRAME_END_WORKER, epoch, &end.base);
}

/* The exit of this worker: its code, or 128 + signal. */
static inline int fake_exit(struct fake_driver *driver, uint32_t epoch, uint32_t seat)
{
    struct note note = fake_take(driver, FRAME_EXITED, epoch, seat);
    Hvdrun__Exited *message = hvdrun__exited__unpack(NULL, note.length, note.body);
    int code = message->signaled ? 128 + message->code : message->code;
    hvdrun__exited__free_unpacked(message, NULL);
    free(note.body);
    return code;
}
