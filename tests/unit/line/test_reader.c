/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "line/line.h"
#include "line/line_fixture.h"

/* An agent that does what a test says, and what the reader has called. */
struct fixture {
    struct line_agent agent;
    struct line_reader *reader;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct buf story;
};

static void note(struct fixture *f, const char *text)
{
    pthread_mutex_lock(&f->lock);
    buf_puts(&f->story, text);
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void ended(void *context, uint32_t rank, bool failed, const char *how)
{
    char text[128];
    snprintf(text, sizeof(text), "%u%s: %s; ", rank, failed ? "" : " well", how);
    note(context, text);
}

static void left(void *context)
{
    note(context, "left; ");
}

static void asked(void *context)
{
    note(context, "asked; ");
}

static void asked_waits(void *context, uint32_t round)
{
    char text[64];
    snprintf(text, sizeof(text), "waits %u; ", round);
    note(context, text);
}

static const struct line_reader_ops ops = {
    .ended = ended, .left = left, .asked = asked, .asked_waits = asked_waits};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    buf_init(&f->story, 100000);
    line_agent_listen(&f->agent);
    f->reader = line_reader_create(f->agent.address, 2, &ops, f, NULL);
    assert_non_null(f->reader);
    line_agent_accept(&f->agent);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    line_reader_destroy(f->reader);
    line_agent_close(&f->agent);
    buf_destroy(&f->story);
    free(f);
    return 0;
}

static void say(const struct fixture *f, const struct line_packet *packet)
{
    line_agent_say(&f->agent, packet);
}

static void say_epoch(const struct fixture *f, uint32_t epoch)
{
    say(f, &(struct line_packet){.type = LINE_EPOCH, .epoch = epoch});
}

static void say_ended(const struct fixture *f, uint32_t epoch, struct line_ended rank)
{
    say(f, &(struct line_packet){
               .type = LINE_ENDED, .epoch = epoch, .ended_count = 1, .ended = {rank}});
}

/* Until the story is this one. */
static void expect(struct fixture *f, const char *story)
{
    struct timespec end;
    int result = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    pthread_mutex_lock(&f->lock);
    while (strcmp(buf_text(&f->story), story) != 0 && result == 0)
        result = pthread_cond_timedwait(&f->changed, &f->lock, &end);
    assert_string_equal(buf_text(&f->story), story);
    pthread_mutex_unlock(&f->lock);
}

static void test_ranks_that_end(void **state)
{
    struct fixture *f = *state;
    say_epoch(f, 2);
    say_ended(f, 2, (struct line_ended){3, LINE_KILLED, 9});
    say_ended(f, 2, (struct line_ended){1, LINE_EXITED, 0});
    say_ended(f, 1, (struct line_ended){2, LINE_EXITED, 0}); /* of another epoch */
    say_ended(f, 2, (struct line_ended){0, LINE_LOST, 0});
    say_epoch(f, 2);
    say_ended(f, 2, (struct line_ended){7, 200, 0}); /* of a later version */
    expect(f,
           "3: it was killed by signal 9; 1 well: it exited with status 0; 0: its host was lost; "
           "7: its host was lost; ");
}

/* A newcomer of epoch 2 connects while epoch 1 still runs. */
static void test_an_earlier_epoch(void **state)
{
    struct fixture *f = *state;
    say_ended(f, 1, (struct line_ended){3, LINE_KILLED, 9}); /* before any EPOCH */
    say_epoch(f, 1);
    say_ended(f, 1, (struct line_ended){3, LINE_KILLED, 9});
    say_epoch(f, 2);
    say_ended(f, 2, (struct line_ended){1, LINE_KILLED, 9});
    expect(f, "1: it was killed by signal 9; ");
}

static void test_the_others_go_on_without_us(void **state)
{
    struct fixture *f = *state;
    say_epoch(f, 5);
    say_epoch(f, 6);
    say_ended(f, 6, (struct line_ended){1, LINE_KILLED, 9});
    expect(f, "left; ");
    line_reader_destroy(f->reader);
    f->reader = NULL;
    expect(f, "left; ");
}

static void test_the_agent_ends(void **state)
{
    struct fixture *f = *state;
    close(f->agent.peer);
    f->agent.peer = -1;
    line_reader_destroy(f->reader); /* does not hang */
    f->reader = NULL;
    expect(f, "");
}

static void test_questions(void **state)
{
    struct fixture *f = *state;
    say(f, &(struct line_packet){.type = LINE_ASK_WAITS, .round = 7});
    say(f, &(struct line_packet){.type = LINE_ASK});
    say_epoch(f, 2);
    say(f, &(struct line_packet){.type = LINE_ASK});
    expect(f, "waits 7; asked; asked; ");
}

static void test_sending(void **state)
{
    struct fixture *f = *state;
    struct line_packet packet = {.type = LINE_PROGRESS, .operations = 3}, got;
    uint8_t bytes[LINE_PACKET_MAX];
    assert_int_equal(line_reader_send(f->reader, &packet), 1);
    ssize_t length = recv(f->agent.peer, bytes, sizeof(bytes), 0);
    assert_true(length > 0);
    assert_int_equal(line_packet_get(bytes, (size_t)length, &got, NULL), 0);
    assert_int_equal(got.operations, 3);
    assert_int_equal(line_reader_send(NULL, &packet), 0);
}

/* Such as the workers of a data loader: they have copies of all descriptors. */
static void test_an_end_with_a_forked_child(void **state)
{
    struct fixture *f = *state;
    uint8_t byte;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    line_reader_destroy(f->reader);
    f->reader = NULL;
    assert_int_equal(recv(f->agent.peer, &byte, 1, 0), 0); /* the agent learns of the end */
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void test_no_agent(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_null(line_reader_create("@hvdrun-nobody-listens-here", 0, &ops, NULL, &err));
    assert_string_not_equal(err.text, "");
    line_reader_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ranks_that_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_earlier_epoch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_others_go_on_without_us, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_agent_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_questions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sending, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_end_with_a_forked_child, setup, teardown),
        cmocka_unit_test(test_no_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
