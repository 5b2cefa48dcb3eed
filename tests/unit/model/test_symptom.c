/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/exit/symptom.h"

#define SECOND INT64_C(1000000000)
#define START (100 * SECOND)

#define TRACE                              \
    "Traceback (most recent call last):\n" \
    "  File \"train.py\", line 12, in <module>\n    step()\n    ~~~~^^\n"
#define DURING "\nDuring handling of the above exception, another exception occurred:\n\n"
#define DIRECT "\nThe above exception was the direct cause of the following exception:\n\n"
#define CLOSED "[gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:33502"
#define SHUT_DOWN                                                                            \
    "Horovod has been shut down. This was caused by an exception on one of the ranks or an " \
    "attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished."

static struct symptom read_all(const struct tail *tail)
{
    struct symptom symptom;
    symptom_read(tail, INT64_MAX, &symptom);
    return symptom;
}

static struct symptom read_text(const char *text)
{
    struct tail tail = {0};
    tail_add(&tail, text, strlen(text), START);
    struct symptom symptom = read_all(&tail);
    tail_destroy(&tail);
    return symptom;
}

struct example {
    enum symptom_kind kind;
    const char *line; /* NULL: not of interest */
    const char *text;
};

static void expect(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct symptom symptom = read_text(examples[i].text);
        if (symptom.kind != examples[i].kind)
            fail_msg("kind %d and not %d: %s", symptom.kind, examples[i].kind, examples[i].text);
        assert_int_equal(symptom.when_ns, symptom.kind == SYMPTOM_NONE ? 0 : START);
        if (examples[i].line != NULL)
            assert_string_equal(symptom.line, examples[i].line);
    }
}
#define EXPECT(examples) expect(examples, sizeof(examples) / sizeof((examples)[0]))

static void errors_of_its_own(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {SYMPTOM_OWN, "ValueError: row 7 is broken", TRACE "ValueError: row 7 is broken\n"},
        {SYMPTOM_OWN, "KeyError: 'x'", "loading\n" TRACE "KeyError: 'x'"},
        {SYMPTOM_OWN, "ValueError: a", TRACE "ValueError: a\n" DURING TRACE "KeyError: b\n"},
        {SYMPTOM_OWN, "ValueError: a", TRACE "ValueError: a\n" DIRECT TRACE "KeyError: b\n"},
        /* torch.distributed puts the rank in front of the lines */
        {SYMPTOM_OWN, "ValueError: bad",
         "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"x.py\", line 1, in f\n"
         "[rank1]: ValueError: bad\n"},
        /* what comes later is about peers that ended because of it */
        {SYMPTOM_OWN, "ValueError: a", TRACE "ValueError: a\n" CLOSED "\n"},
        {SYMPTOM_OWN, "Fatal Python error: Segmentation fault",
         "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"
         "  File \"x.py\", line 3 in <module>\n"},
        {SYMPTOM_OWN, "Fatal Python error: Aborted", "Fatal Python error: Aborted\n"},
        {SYMPTOM_OWN, "terminate called after throwing an instance of 'std::runtime_error'",
         "terminate called after throwing an instance of 'std::runtime_error'\n"
         "  what():  no such file\n"},
        {SYMPTOM_OWN, NULL, "sim: mesh.c:3: build: Assertion `n > 0' failed.\n"},
        {SYMPTOM_OWN, NULL, "[c1:00712] *** Process received signal ***\n"},
        {SYMPTOM_OWN, NULL, "[c1:00712] *** An error occurred in MPI_Recv\n"},
        {SYMPTOM_OWN, NULL, "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\n"},
        {SYMPTOM_OWN, NULL,
         "Abort(3) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 3)"},
        {SYMPTOM_OWN, NULL,
         "Fatal error in PMPI_Recv: Message truncated, error stack:\nPMPI_Recv(173): failed\n"},
        {SYMPTOM_OWN, "RuntimeError: NCCL error in: NCCLUtils.hpp:219, invalid usage",
         TRACE "RuntimeError: NCCL error in: NCCLUtils.hpp:219, invalid usage\n"},
    };
    EXPECT(examples);
}

/* The words of libhvd and of Horovod about a rank that has left; a number in the wrong place. */
static void a_peer_that_left(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum symptom_kind kind;
        bool of_rank, left;
        int peer;
    } examples[] = {
        {"rank 12 has shut the library down\n", SYMPTOM_LOST, true, true, 12},
        {TRACE "x.HorovodInternalError: rank 1 has shut the library down\n", SYMPTOM_LOST, true,
         true, 1},
        {"rank 3 has ended without hvd_shutdown()", SYMPTOM_LOST, true, true, 3},
        {"rank x rank 4 has shut the library down", SYMPTOM_LOST, true, true, 4},
        {"rank 1234567890 has shut the library down\n", SYMPTOM_NONE, false, false, -1},
        {"rank  has shut the library down\n", SYMPTOM_NONE, false, false, -1},
        {"rank 5 has shut the library dow", SYMPTOM_NONE, false, false, -1},
        {"rank 5", SYMPTOM_NONE, false, false, -1},
        {TRACE "RuntimeError: " SHUT_DOWN "\n", SYMPTOM_LOST, true, true, -1},
        {"the connection to rank 3 ended\n", SYMPTOM_LOST, true, false, -1},
        {"the connection to rank 3 ended: Broken pipe\n", SYMPTOM_LOST, true, false, -1},
        {"rank 3 was lost: its host was lost\n", SYMPTOM_LOST, true, false, -1},
        {"rank 0 does not answer\n", SYMPTOM_TIMEOUT, true, false, -1},
        {TRACE "BrokenPipeError: [Errno 32] Broken pipe\n", SYMPTOM_LOST, false, false, -1},
        {TRACE "OSError: [Errno 110] Connection timed out\n", SYMPTOM_TIMEOUT, false, false, -1},
        {TRACE "RuntimeError: " CLOSED "\n", SYMPTOM_LOST, true, false, -1},
        {TRACE "ValueError: a\n", SYMPTOM_OWN, false, false, -1},
    };
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        struct symptom symptom = read_text(examples[i].text);
        bool right = symptom.kind == examples[i].kind && symptom.of_rank == examples[i].of_rank &&
                     symptom.left == examples[i].left && symptom.peer == examples[i].peer;
        if (!right)
            fail_msg("kind %d, rank %d: %s", symptom.kind, symptom.peer, examples[i].text);
    }
}

static void errors_from_a_peer(void **state)
{
    (void)state;
    static const struct example examples[] = {
        /* a library reports a peer and calls abort(), which Python's fault handler reports too */
        {SYMPTOM_LOST, NULL,
         "terminate called after throwing an instance of 'c10::Error'\n  what():  " CLOSED
         "\nFatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n"
         "  File \"x.py\", line 3 in <module>\n"},
        {SYMPTOM_LOST, "RuntimeError: " CLOSED, TRACE "RuntimeError: " CLOSED "\n"},
        {SYMPTOM_LOST, NULL, TRACE "ConnectionResetError: [Errno 104] Connection reset by peer\n"},
        {SYMPTOM_LOST, NULL, TRACE "BrokenPipeError: [Errno 32] Broken pipe\n"},
        {SYMPTOM_LOST, NULL,
         TRACE "RuntimeError: " SHUT_DOWN "\n" DURING TRACE
               "horovod.common.exceptions.HorovodInternalError: " SHUT_DOWN "\n"},
        /* a program's own words for it */
        {SYMPTOM_LOST, NULL, TRACE "RuntimeError: " CLOSED "\n" DIRECT TRACE "StepFailed: 7\n"},
        {SYMPTOM_LOST, "Horovod has been shut down.",
         TRACE "tensorflow.errors_impl.UnknownError: Graph execution error:\n\nDetected at node "
               "'HorovodAllreduce'\nHorovod has been shut down.\n\t [[{{node X}}]]\n"},
        {SYMPTOM_LOST, NULL,
         "terminate called after throwing an instance of 'gloo::IoException'\n  what():  " CLOSED
         "\n"},
        {SYMPTOM_LOST, NULL,
         TRACE "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, unhandled "
               "system error\nncclSystemError: System call failed.\nLast error:\nsocketProgress: "
               "Connection closed by remote peer c2<55693>\n"},
        {SYMPTOM_LOST, NULL,
         "Fatal error in PMPI_Test: Other MPI error, error stack:\nPMPI_Test(166)...: failed\n"
         "MPID_nem_tcp_connpoll(1826): Communication error with rank 1: Connection reset by peer"},
        {SYMPTOM_TIMEOUT, NULL,
         "[rank0]:[E1122 02:06:55.187 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught "
         "collective operation timeout: WorkNCCL(SeqNum=168, OpType=ALLREDUCE)\n"},
        {SYMPTOM_TIMEOUT, NULL,
         TRACE "RuntimeError: [unbound_buffer.cc:136] Timed out waiting 30000ms for recv "
               "operation to complete\n"},
        {SYMPTOM_LOST, NULL, CLOSED "\n" TRACE "HorovodInternalError: x\n" CLOSED "\n"},
    };
    EXPECT(examples);
}

static void neither_nor(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {SYMPTOM_NONE, "", ""},
        {SYMPTOM_NONE, "", "epoch 3: loss 0.2\nwarning: slow disk\n"},
        {SYMPTOM_NONE, "", "Traceback (most recent call last):\n  File \"x.py\", line 1\n"},
        /* these tracebacks end nothing */
        {SYMPTOM_NONE, "", "Exception ignored in: <function f at 0x1>\n" TRACE "ValueError: x\n"},
        {SYMPTOM_NONE, "", "--- Logging error ---\n" TRACE "ValueError: x\n"},
        {SYMPTOM_OWN, "KeyError: y",
         "Exception ignored in: <function f at 0x1>\n" TRACE "ValueError: x\n" TRACE
         "KeyError: y\n"},
        /* one cannot tell which of the two ended it */
        {SYMPTOM_MIXED, NULL, CLOSED "\n" TRACE "ValueError: x\n"},
        {SYMPTOM_MIXED, NULL, TRACE "KeyError: 1\n" DURING TRACE "RuntimeError: " CLOSED "\n"},
    };
    EXPECT(examples);
}

/* A line that is cut anywhere is the same line. */
static void cut_anywhere(void **state)
{
    (void)state;
    static const char text[] = "x\n[rank1]: " TRACE "HorovodInternalError: gone\nlast\n";
    for (size_t at = 0; at < sizeof(text); at++) {
        struct tail tail = {0};
        tail_add(&tail, text, at, START);
        tail_add(&tail, text + at, sizeof(text) - 1 - at, START + SECOND);
        struct symptom symptom = read_all(&tail);
        assert_int_equal(symptom.kind, SYMPTOM_LOST);
        assert_string_equal(symptom.line, "HorovodInternalError: gone");
        assert_int_equal(symptom.when_ns, at > 2 ? START : START + SECOND);
        tail_destroy(&tail);
    }
}

/* Of a long traceback only the end is kept. */
static void a_long_traceback(void **state)
{
    (void)state;
    struct tail tail = {0};
    tail_add(&tail, TRACE, strlen(TRACE), START);
    static const char frame[] = "  File \"deep.py\", line 3, in call\n    return next(self)\n";
    for (int i = 0; i < 400; i++)
        tail_add(&tail, frame, sizeof(frame) - 1, START + 3000000);
    tail_add(&tail, "ValueError: deep\n", 17, START + 3000000);
    struct symptom symptom = read_all(&tail);
    assert_int_equal(symptom.kind, SYMPTOM_OWN);
    assert_string_equal(symptom.line, "ValueError: deep");
    assert_true(symptom.when_ns >= START);
    tail_destroy(&tail);
}

static void say(struct tail *tail, const char *text, int64_t after_ns)
{
    tail_add(tail, text, strlen(text), START + after_ns);
}

/* An error after which the worker goes on was handled. */
static void handled_errors(void **state)
{
    (void)state;
    struct tail tail = {0};
    say(&tail, TRACE "ValueError: x\n", 0);
    say(&tail, "will exit\n", TAIL_SILENCE_NS);
    assert_int_equal(read_all(&tail).kind, SYMPTOM_OWN);
    say(&tail, "epoch 4\n", TAIL_SILENCE_NS + SECOND);
    assert_int_equal(read_all(&tail).kind, SYMPTOM_NONE);
    say(&tail, CLOSED "\n", 2 * TAIL_SILENCE_NS); /* the next error is another one */
    struct symptom symptom = read_all(&tail);
    assert_int_equal(symptom.kind, SYMPTOM_LOST);
    assert_int_equal(symptom.when_ns, START + 2 * TAIL_SILENCE_NS);
    tail_elsewhere(&tail, START + 4 * TAIL_SILENCE_NS);
    assert_int_equal(read_all(&tail).kind, SYMPTOM_NONE);
    tail_destroy(&tail);
}

static void only_until_then(void **state)
{
    (void)state;
    struct tail tail = {0};
    struct symptom symptom;
    say(&tail, CLOSED "\n", 0);
    say(&tail, TRACE "ValueError: x\n", SECOND);
    symptom_read(&tail, START, &symptom);
    assert_int_equal(symptom.kind, SYMPTOM_NONE);
    symptom_read(&tail, START + SECOND, &symptom);
    assert_int_equal(symptom.kind, SYMPTOM_LOST);
    symptom_read(&tail, START + SECOND + 1, &symptom);
    assert_int_equal(symptom.kind, SYMPTOM_MIXED);
    tail_destroy(&tail);
}

static void a_printable_line(void **state)
{
    (void)state;
    assert_string_equal(read_text(TRACE "Error: \a\377\xc3\xbc\r\n").line, "Error:  ?\xc3\xbc");
    char *text = malloc(4000);
    memset(text, 'E', 3999);
    memcpy(text, TRACE, strlen(TRACE));
    text[3999] = '\0';
    assert_int_equal(strlen(read_text(text).line), SYMPTOM_LINE_MAX);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_its_own), cmocka_unit_test(errors_from_a_peer),
        cmocka_unit_test(a_peer_that_left),  cmocka_unit_test(neither_nor),
        cmocka_unit_test(cut_anywhere),      cmocka_unit_test(a_long_traceback),
        cmocka_unit_test(handled_errors),    cmocka_unit_test(only_until_then),
        cmocka_unit_test(a_printable_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
