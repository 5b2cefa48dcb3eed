/* SPDX-License-Identifier: Apache-2.0 */
/* Frames arrive whole and in order, however their bytes are cut. Other bytes end the link. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "io/link_fixture.h"
#include "io/send_queue.h"
#include "wire/control.pb-c.h"

static void test_order(void **state)
{
    struct fixture *f = *state;
    link_set_node(f->a.link, 42);
    for (int i = 0; i < 100; i++) {
        char text[16];
        int length = snprintf(text, sizeof(text), "%d,", i);
        link_send(f->a.link, i % 2 == 0 ? FRAME_LOG : FRAME_SIGNAL, (uint32_t)i, text,
                  (size_t)length);
    }
    f->b.stop_after = 100;
    assert_true(link_queued(f->a.link) > 0); /* written at the end of the turn */
    run_loop(f->loop);
    assert_int_equal(link_queued(f->a.link), 0);
    assert_memory_equal(buf_text(&f->b.bodies), "0,1,2,3,4,", 10);
    assert_string_equal(buf_text(&f->b.bodies) + f->b.bodies.length - 6, "98,99,");
    assert_int_equal(f->b.last.node, 42);
    assert_int_equal(f->b.last.epoch, 99);
    assert_int_equal(f->b.last.type, FRAME_SIGNAL);
    assert_int_equal(f->b.types[0], FRAME_LOG);
}

static void test_empty_and_answers(void **state)
{
    struct fixture *f = *state;
    f->b.answer = true;
    f->a.stop_after = 2;
    link_send(f->a.link, FRAME_QUIT, 7, NULL, 0);
    link_send(f->a.link, FRAME_QUIT, 8, NULL, 0);
    run_loop(f->loop);
    assert_int_equal(f->b.frames, 2);
    assert_int_equal(f->b.bodies.length, 0);
    assert_int_equal(f->b.last.node, FRAME_NODE_NONE);
    assert_string_equal(buf_text(&f->a.bodies), "answeranswer");
    assert_int_equal(f->a.last.epoch, 9);
}

/* Bodies around the limit of a frame, and much larger ones: they arrive whole, as one. */
static void test_large_bodies(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {FRAME_BODY_MAX - 1, FRAME_BODY_MAX,         FRAME_BODY_MAX + 1,
                                   2 * FRAME_BODY_MAX, 7 * FRAME_BODY_MAX + 3, 1};
    uint8_t *body = malloc(8 * FRAME_BODY_MAX);
    for (size_t i = 0; i < 8 * FRAME_BODY_MAX; i++)
        body[i] = (uint8_t)(i % 251);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        link_send(f->a.link, FRAME_PREPARE, (uint32_t)i, body, sizes[i]);
        f->b.stop_after = f->b.frames + 1;
        run_loop(f->loop);
        assert_int_equal(f->b.frames, i + 1);
        assert_int_equal(f->b.last.type, FRAME_PREPARE);
        assert_int_equal(f->b.last.length, sizes[i]);
        assert_int_equal(f->b.bodies.length, sizes[i]);
        assert_memory_equal(buf_text(&f->b.bodies), body, sizes[i]);
        buf_clear(&f->b.bodies);
    }
    free(body);
}

static void test_large_message(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {3, 5 * FRAME_BODY_MAX};
    for (size_t i = 0; i < 2; i++) {
        uint8_t *value = mem_alloc(sizes[i]);
        value[sizes[i] - 1] = 'z';
        Hvdrun__KvReply message = HVDRUN__KV_REPLY__INIT;
        message.token = 5;
        message.body.data = value;
        message.body.len = sizes[i];
        link_send_message(f->a.link, FRAME_KV_REPLY, 1, &message.base);
        f->b.stop_after = f->b.frames + 1;
        run_loop(f->loop);
        Hvdrun__KvReply *back = hvdrun__kv_reply__unpack(NULL, f->b.bodies.length,
                                                         (const uint8_t *)buf_text(&f->b.bodies));
        assert_non_null(back);
        assert_int_equal(back->token, 5);
        assert_int_equal(back->body.len, sizes[i]);
        assert_memory_equal(back->body.data, value, sizes[i]);
        hvdrun__kv_reply__free_unpacked(back, NULL);
        buf_clear(&f->b.bodies);
        free(value);
    }
}

/* Only the head of a message is the link's own: it arrives as if it were packed whole. */
static void test_shared_message(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {0,
                                   5,
                                   200,
                                   FRAME_BODY_MAX - 12,
                                   FRAME_BODY_MAX - 1,
                                   FRAME_BODY_MAX,
                                   FRAME_BODY_MAX + 1,
                                   3 * FRAME_BODY_MAX + 17};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct shared_block *block = shared_block_create(sizes[i]);
        for (size_t at = 0; at < sizes[i]; at++)
            block->bytes[at] = (uint8_t)(at % 251);
        Hvdrun__MpiCollected message = HVDRUN__MPI_COLLECTED__INIT;
        message.token = 1234567 + i;
        message.pmi1 = true;
        link_send(f->a.link, FRAME_LOG, 1, "before", 6);
        link_send_shared(f->a.link, FRAME_MPI_COLLECTED, 1, &message.base, 4, block);
        link_send(f->a.link, FRAME_LOG, 1, "behind", 6);
        f->b.stop_after = f->b.frames + 3;
        run_loop(f->loop);
        assert_int_equal(block->holders, 1);
        const char *bodies = buf_text(&f->b.bodies);
        size_t length = f->b.bodies.length;
        assert_memory_equal(bodies, "before", 6);
        assert_memory_equal(bodies + length - 6, "behind", 6);
        Hvdrun__MpiCollected *back =
            hvdrun__mpi_collected__unpack(NULL, length - 12, (const uint8_t *)bodies + 6);
        assert_non_null(back);
        assert_int_equal(back->token, 1234567 + i);
        assert_true(back->pmi1);
        assert_int_equal(back->data.len, sizes[i]);
        assert_memory_equal(back->data.data, block->bytes, sizes[i]);
        hvdrun__mpi_collected__free_unpacked(back, NULL);
        buf_clear(&f->b.bodies);
        shared_block_release(block);
    }
}

/* The block has fields of the message: they arrive as if it were packed whole, even if the link's
 * own fields fill several frames. */
static void test_shared_fields(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {0, 5, FRAME_BODY_MAX - 20, 2 * FRAME_BODY_MAX + 17};
    for (size_t i = 0; i < 16; i++) {
        size_t size = sizes[i / 4];
        char *text = mem_alloc(sizes[i % 4] + 1);
        memset(text, 't', sizes[i % 4]);
        text[sizes[i % 4]] = '\0';
        uint8_t *value = mem_alloc(size + 1);
        memset(value, 'v', size);
        Hvdrun__MpiCollected all = HVDRUN__MPI_COLLECTED__INIT, own = all;
        all.round = 9;
        all.data = (ProtobufCBinaryData){.len = size, .data = value};
        own.token = 1234567 + i;
        own.problem = text;
        struct shared_block *block =
            shared_block_create(hvdrun__mpi_collected__get_packed_size(&all));
        hvdrun__mpi_collected__pack(&all, block->bytes);
        link_send_shared(f->a.link, FRAME_MPI_COLLECTED, 1, &own.base, 0, block);
        f->b.stop_after = f->b.frames + 1;
        run_loop(f->loop);
        Hvdrun__MpiCollected *back = hvdrun__mpi_collected__unpack(
            NULL, f->b.bodies.length, (const uint8_t *)buf_text(&f->b.bodies));
        assert_non_null(back);
        assert_int_equal(back->token, own.token);
        assert_string_equal(back->problem, text);
        assert_int_equal(back->round, 9);
        assert_int_equal(back->data.len, size);
        assert_memory_equal(back->data.data, value, size);
        hvdrun__mpi_collected__free_unpacked(back, NULL);
        buf_clear(&f->b.bodies);
        shared_block_release(block);
        free(value);
        free(text);
    }
}

/* A large message in pieces arrives whole; frames that are sent later go between its pieces. A
 * small one keeps its place. */
static void test_pieces(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {0, 5, 70 << 10, 3 * FRAME_BODY_MAX + 17};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct shared_block *block = shared_block_create(sizes[i]);
        for (size_t at = 0; at < sizes[i]; at++)
            block->bytes[at] = (uint8_t)(at % 251);
        Hvdrun__MpiCollected message = HVDRUN__MPI_COLLECTED__INIT;
        message.token = 1234567 + i;
        link_send_pieces(f->a.link, FRAME_MPI_COLLECTED, 1, &message.base, 4, block);
        link_send(f->a.link, FRAME_LOG, 1, "behind", 6);
        assert_true(link_queued(f->a.link) > sizes[i]);
        f->b.stop_after = f->b.frames + 2;
        run_loop(f->loop);
        assert_int_equal(block->holders, 1);
        assert_int_equal(link_queued(f->a.link), 0);
        const char *bodies = buf_text(&f->b.bodies);
        size_t length = f->b.bodies.length - 6;
        bool small = sizes[i] < 64 << 10;
        assert_int_equal(f->b.last.type, small ? FRAME_LOG : FRAME_MPI_COLLECTED);
        assert_memory_equal(bodies + (small ? length : 0), "behind", 6);
        Hvdrun__MpiCollected *back =
            hvdrun__mpi_collected__unpack(NULL, length, (const uint8_t *)bodies + (small ? 0 : 6));
        assert_non_null(back);
        assert_int_equal(back->token, 1234567 + i);
        assert_int_equal(back->data.len, sizes[i]);
        assert_memory_equal(back->data.data, block->bytes, sizes[i]);
        hvdrun__mpi_collected__free_unpacked(back, NULL);
        buf_clear(&f->b.bodies);
        shared_block_release(block);
    }
}

/* The other side does not read: a message in pieces costs a reference, and what must go soon is
 * behind one piece at most. */
static void test_pieces_wait(void **state)
{
    struct fixture *f = *state;
    struct shared_block *block = shared_block_create(20 * FRAME_BODY_MAX);
    Hvdrun__MpiCollected message = HVDRUN__MPI_COLLECTED__INIT;
    for (int i = 0; i < 3; i++)
        link_send_pieces(f->a.link, FRAME_MPI_COLLECTED, 1, &message.base, 4, block);
    assert_int_equal(block->holders, 4);
    assert_false(link_flush(f->a.link));
    link_send(f->a.link, FRAME_HEARTBEAT, 1, NULL, 0);
    f->b.stop_after = 1;
    run_loop(f->loop);
    assert_int_equal(f->b.last.type, FRAME_HEARTBEAT);
    for (int i = 0; i < 10; i++)
        link_send_pieces(f->a.link, FRAME_MPI_COLLECTED, 1, &message.base, 4, block);
    run_loop(f->loop); /* more than a link may have to send: it is closed */
    assert_int_equal(f->a.closes, 1);
    drop_link(&f->a);
    run_turns(f->loop, 2);
    assert_int_equal(block->holders, 1);
    shared_block_release(block);
}

static void send_pieces(struct link *link, uint32_t epoch, uint64_t token,
                        struct shared_block *block)
{
    Hvdrun__MpiCollected message = HVDRUN__MPI_COLLECTED__INIT;
    message.token = token;
    link_send_pieces(link, FRAME_MPI_COLLECTED, epoch, &message.base, 4, block);
}

/* A small one behind a large one does not overtake it. */
static void test_pieces_in_order(void **state)
{
    struct fixture *f = *state;
    struct shared_block *large = shared_block_create(FRAME_BODY_MAX),
                        *small = shared_block_create(0);
    send_pieces(f->a.link, 1, 1, large);
    send_pieces(f->a.link, 1, 2, small);
    f->b.stop_after = 2;
    run_loop(f->loop);
    assert_true(f->b.last.length < 10);
    shared_block_release(large);
    shared_block_release(small);
}

/* All that waits counts, in whatever way it waits. */
static void test_pieces_count(void **state)
{
    struct fixture *f = *state;
    struct shared_block *half = shared_block_create(LINK_QUEUE_MAX / 2 + 1);
    assert_true(link_takes(f->a.link, LINK_QUEUE_MAX / 2));
    assert_false(link_takes(f->a.link, LINK_QUEUE_MAX / 2 + 1));
    send_pieces(f->a.link, 1, 1, half);
    assert_false(link_takes(f->a.link, 0));
    Hvdrun__MpiCollected message = HVDRUN__MPI_COLLECTED__INIT;
    link_send_shared(f->a.link, FRAME_MPI_COLLECTED, 1, &message.base, 4, half);
    send_pieces(f->a.link, 1, 2, half);
    assert_int_equal(half->holders, 2); /* the first one */
    f->a.destroy_in_closed = true;
    run_loop(f->loop);
    assert_int_equal(f->a.closes, 1);
    assert_string_equal(f->a.reason, "the other side does not read");
    run_turns(f->loop, 2);
    assert_int_equal(half->holders, 1);
    shared_block_release(half);
}

/* Of an epoch that is over, only what has begun is sent. */
static void test_pieces_of_an_ended_epoch(void **state)
{
    struct fixture *f = *state;
    struct shared_block *large = shared_block_create(20 * FRAME_BODY_MAX),
                        *small = shared_block_create(3);
    send_pieces(f->a.link, 1, 1, large);
    assert_false(link_flush(f->a.link));
    send_pieces(f->a.link, 1, 2, large);
    send_pieces(f->a.link, 2, 3, small);
    send_pieces(f->a.link, 1, 4, small);
    link_drop_pieces(f->a.link, 1);
    send_pieces(f->a.link, 3, 5, small);
    f->b.stop_after = 3;
    run_loop(f->loop);
    assert_int_equal(link_queued(f->a.link), 0);
    assert_true(f->b.bodies.length > large->length && f->b.bodies.length < large->length + 50);
    assert_int_equal(f->b.last.epoch, 3);
    assert_int_equal(large->holders, 1);
    assert_int_equal(small->holders, 1);
    shared_block_release(large);
    shared_block_release(small);
}

/* A link that ends before it has sent all gives the block back. */
static void test_shared_and_ended(void **state)
{
    struct fixture *f = *state;
    struct shared_block *block = shared_block_create(4 * FRAME_BODY_MAX);
    Hvdrun__MpiCollected message = HVDRUN__MPI_COLLECTED__INIT;
    link_send_shared(f->a.link, FRAME_MPI_COLLECTED, 1, &message.base, 4, block);
    assert_true(block->holders > 1);
    assert_true(link_queued(f->a.link) > block->length);
    drop_link(&f->a);
    run_turns(f->loop, 2);
    assert_int_equal(block->holders, 1);
    shared_block_release(block);
}

/* However the bytes are torn: the same frames. */
static void test_bytewise(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = BUF_INIT(100000);
    uint16_t number = 0;
    for (size_t piece = 1; piece < 40; piece += piece < 5 ? 1 : 7) {
        buf_clear(&bytes);
        put_frame(&bytes, number++, FRAME_LOG, "first", 5);
        put_frame(&bytes, number++, FRAME_PART, "second in ", 10);
        put_frame(&bytes, number++, FRAME_PART, "three ", 6);
        put_frame(&bytes, number++, FRAME_EXITED, "parts", 5);
        put_frame(&bytes, number++, FRAME_QUIT, NULL, 0);
        for (size_t at = 0; at < bytes.length; at += piece) {
            size_t left = bytes.length - at;
            assert_int_equal(
                fd_write_all(f->peer, buf_text(&bytes) + at, left < piece ? left : piece), 0);
            run_turns(f->loop, 1);
        }
        run_turns(f->loop, 2);
        assert_int_equal(f->a.frames, 3);
        assert_string_equal(buf_text(&f->a.bodies), "firstsecond in three parts");
        assert_int_equal(f->a.types[0], FRAME_LOG);
        assert_int_equal(f->a.types[1], FRAME_EXITED);
        assert_int_equal(f->a.types[2], FRAME_QUIT);
        assert_int_equal(f->a.last.node, 1);
        assert_int_equal(f->a.last.epoch, 2);
        f->a.frames = 0;
        buf_clear(&f->a.bodies);
    }
    buf_destroy(&bytes);
}

/* Frames before the rubbish are handed out; then one closed() with the reason, and nothing more. */
static void test_rubbish(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = BUF_INIT(1000);
    put_frame(&bytes, 0, FRAME_LOG, "good", 4);
    buf_puts(&bytes, "GET / HTTP/1.1\r\n\r\n");
    put_frame(&bytes, 1, FRAME_LOG, "too late", 8);
    peer_writes(f, &bytes);
    run_loop(f->loop);
    assert_int_equal(f->a.closes, 1);
    assert_non_null(strstr(f->a.reason, "protocol"));
    assert_string_equal(buf_text(&f->a.bodies), "good");
    /* the other side sees the end, what is sent now goes nowhere, and nothing is called again */
    link_send(f->a.link, FRAME_LOG, 0, "x", 1);
    assert_null(link_data_reserve(f->a.link, 10));
    assert_int_equal(link_queued(f->a.link), 0);
    assert_true(link_flush(f->a.link));
    run_turns(f->loop, 3);
    assert_int_equal(f->a.closes, 1);
    assert_int_equal(f->a.drains, 0);
    buf_destroy(&bytes);
}

/* One frame of a story is missing, comes twice, or comes after the next one. Those before it are
 * handed out, and then it is the end; the other side is told, as far as it can be. */
static void test_not_the_next(void **state)
{
    struct fixture *f = *state;
    static const struct {
        uint16_t numbers[4];
        const char *taken;
    } stories[] = {{{0, 2, 3, 4}, "a"}, {{0, 1, 1, 2}, "ab"}, {{0, 2, 1, 3}, "a"},
                   {{1, 2, 3, 4}, ""},  {{0, 0, 1, 2}, "a"},  {{0, 1, 2, 0xffff}, "abc"}};
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
        AUTO_BUF struct buf bytes = BUF_INIT(1000);
        struct end end;
        uint8_t said[FRAME_HEADER_SIZE + 4] = "";
        int pair[2];
        assert_int_equal(fd_socketpair(pair), 0);
        end_open(&end, f->loop, pair[0]);
        for (int k = 0; k < 4; k++)
            put_frame(&bytes, stories[i].numbers[k], FRAME_LOG, &"abcd"[k], 1);
        assert_int_equal(fd_write_all(pair[1], buf_text(&bytes), bytes.length), 0);
        run_loop(f->loop);
        assert_string_equal(buf_text(&end.bodies), stories[i].taken);
        assert_int_equal(end.closes, 1);
        assert_non_null(strstr(end.reason, "lost, repeated or reordered"));
        assert_string_equal(end.refusal, end.reason);
        assert_int_equal(fd_read(pair[1], said, sizeof(said)), FRAME_HEADER_SIZE + 3);
        assert_string_equal((const char *)said + FRAME_HEADER_SIZE, "why");
        fd_close(&pair[1]);
        end_close(&end);
    }
}

/* The count of frames goes round. */
static void test_numbers_go_round(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 70; i++) {
        for (int k = 0; k < 1000; k++)
            link_send(f->a.link, FRAME_RESUME, 0, NULL, 0);
        f->b.stop_after = f->b.frames + 1000;
        run_loop(f->loop);
    }
    assert_int_equal(f->b.frames, 70000);
    assert_int_equal(f->b.last.number, 69999 - 65536);
    assert_int_equal(f->b.closes, 0);
}

static void test_unknown_type_and_too_long(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = BUF_INIT(1000);
    put_frame(&bytes, 0, 250, "?", 1);
    peer_writes(f, &bytes);
    run_loop(f->loop);
    assert_int_equal(f->a.closes, 1);
    assert_non_null(strstr(f->a.reason, "unknown frame type 250"));
    buf_destroy(&bytes);
}

/* A sender of endless parts is stopped at the limit of a whole message. */
static void test_endless_parts(void **state)
{
    struct fixture *f = *state;
    struct end *b = &f->b;
    uint8_t *body = mem_alloc(FRAME_BODY_MAX);
    for (int i = 0; i < 70 && b->closes == 0; i++) {
        link_send(f->a.link, FRAME_PART, 0, body, FRAME_BODY_MAX);
        run_turns(f->loop, 30);
    }
    assert_int_equal(b->closes, 1);
    assert_non_null(strstr(b->reason, "too large"));
    assert_int_equal(b->frames, 0);
    free(body);
}

static void test_two_descriptors(void **state)
{
    struct fixture *f = *state;
    int there[2], back[2];
    assert_int_equal(fd_pipe(there), 0);
    assert_int_equal(fd_pipe(back), 0);
    struct end a = {.loop = f->loop, .bodies = BUF_INIT(1000), .stop_after = 1};
    struct end b = {.loop = f->loop, .bodies = BUF_INIT(1000), .answer = true};
    a.link = link_create(f->loop, back[0], there[1], &ops, &a, NULL);
    b.link = link_create(f->loop, there[0], back[1], &ops, &b, NULL);
    link_send(a.link, FRAME_QUIT, 1, NULL, 0);
    run_loop(f->loop);
    assert_string_equal(buf_text(&a.bodies), "answer");
    drop_link(&b); /* both of its descriptors */
    run_loop(f->loop);
    assert_int_equal(a.closes, 1);
    assert_int_equal(fcntl(there[0], F_GETFD), -1);
    assert_int_equal(fcntl(back[1], F_GETFD), -1);
    end_close(&a);
    end_close(&b);
}

/* The pipe that it reads, and only while it is asked for. */
static void test_wide_pipe(void **state)
{
    struct fixture *f = *state;
    int there[2], back[2];
    struct end a = {.loop = f->loop, .bodies = BUF_INIT(1 << 20)};
    assert_int_equal(fd_pipe(there), 0);
    assert_int_equal(fd_pipe(back), 0);
    if (fcntl(there[1], F_SETPIPE_SZ, 256 << 10) < 0) {
        print_message("this user may have no wide pipe: not tested\n");
        skip();
    }
    int usual = fcntl(there[1], F_SETPIPE_SZ, 32 << 10);
    a.link = link_create(f->loop, there[0], back[1], &ops, &a, NULL);
    assert_int_equal(fcntl(there[1], F_GETPIPE_SZ), usual);
    link_widen(a.link, false);
    assert_int_equal(fcntl(there[1], F_GETPIPE_SZ), usual);
    for (int i = 0; i < 2; i++) {
        link_widen(a.link, true);
        assert_int_equal(fcntl(there[1], F_GETPIPE_SZ), 256 << 10);
    }
    for (int i = 0; i < 2; i++) {
        link_widen(a.link, false);
        assert_int_equal(fcntl(there[1], F_GETPIPE_SZ), usual);
    }
    /* what has no room in the usual pipe keeps it wide, until it is asked for again */
    char bytes[100 << 10] = "";
    link_widen(a.link, true);
    assert_int_equal(fd_write_all(there[1], bytes, sizeof(bytes)), 0);
    link_widen(a.link, false);
    assert_int_equal(fcntl(there[1], F_GETPIPE_SZ), 256 << 10);
    assert_int_equal(fd_read(there[0], bytes, sizeof(bytes)), sizeof(bytes));
    link_widen(a.link, false);
    assert_int_equal(fcntl(there[1], F_GETPIPE_SZ), usual);
    link_widen(f->a.link, true); /* a socket: nothing happens */
    link_widen(f->a.link, false);
    fcntl(there[1], F_SETPIPE_SZ, 1 << 20); /* the user wants even more, where he may */
    usual = fcntl(there[1], F_GETPIPE_SZ);
    if (usual >= 256 << 10) {
        link_widen(a.link, true);
        assert_int_equal(fcntl(there[1], F_GETPIPE_SZ), usual);
    }
    fd_close(&there[1]);
    fd_close(&back[0]);
    end_close(&a);
}

static void test_bad_descriptor(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    assert_null(link_create(f->loop, -1, -1, &ops, NULL, &err));
    assert_non_null(strstr(err.text, "link"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR(test_order),
        PAIR(test_empty_and_answers),
        PAIR(test_large_bodies),
        PAIR(test_large_message),
        PAIR(test_shared_message),
        PAIR(test_shared_fields),
        PAIR(test_pieces),
        PAIR(test_pieces_wait),
        PAIR(test_pieces_in_order),
        PAIR(test_pieces_count),
        PAIR(test_pieces_of_an_ended_epoch),
        PAIR(test_shared_and_ended),
        ALONE(test_bytewise),
        ALONE(test_rubbish),
        ALONE(test_not_the_next),
        PAIR(test_numbers_go_round),
        ALONE(test_unknown_type_and_too_long),
        PAIR(test_endless_parts),
        PAIR(test_two_descriptors),
        PAIR(test_wide_pipe),
        PAIR(test_bad_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
