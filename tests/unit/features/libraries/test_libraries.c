/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of agents, right ones and wrong ones, and what the job says then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/ask_fixture.h"
#include "features/libraries/libraries.h"

struct bench {
    struct fixture *f;
    struct agents agents;
};

static int begin(void **state)
{
    static struct bench bench;
    if (setup(state) < 0)
        return -1;
    bench = (struct bench){.f = *state};
    agents_begin(&bench.agents, bench.f);
    agents_connect(&bench.agents, 0);
    agents_connect(&bench.agents, 1);
    assert_int_equal(libraries_part.open(&bench.f->job, NULL), 0);
    *state = &bench;
    return 0;
}

static int end(void **state)
{
    struct bench *bench = *state;
    libraries_part.close(&bench->f->job);
    agents_end(&bench->agents);
    *state = bench->f;
    return teardown(state);
}

/* Host a has ranks 0 and 1, b has rank 2. The answer of a host: rank `seat` has files 0 to `count`
 * of these. */
struct reply {
    Hvdrun__Library files[3], *file_list[40];
    Hvdrun__RankLibraries rank, *ranks[1];
    Hvdrun__Libraries message;
};

static void reply_make(struct reply *reply, uint32_t seat, const char *id, size_t count)
{
    *reply =
        (struct reply){.rank = HVDRUN__RANK_LIBRARIES__INIT, .message = HVDRUN__LIBRARIES__INIT};
    static char *const paths[] = {"/l/libmpi.so.40.1", "/l/libnccl.so.2", "/l/\033[31mlibhvd.so.0"};
    for (int i = 0; i < 40; i++)
        reply->file_list[i] = &reply->files[i % 3];
    for (int i = 0; i < 3; i++) {
        reply->files[i] = (Hvdrun__Library)HVDRUN__LIBRARY__INIT;
        reply->files[i].kind = i == 0 ? LIBRARY_MPI : i == 1 ? LIBRARY_NCCL : LIBRARY_HVD;
        reply->files[i].path = paths[i];
        reply->files[i].id = (char *)id;
        reply->files[i].machine = 7;
    }
    reply->rank.seat = seat;
    reply->rank.worker = 100 + seat;
    reply->rank.libraries = reply->file_list;
    reply->rank.n_libraries = count;
    reply->ranks[0] = &reply->rank;
    reply->message.ranks = reply->ranks;
    reply->message.n_ranks = 1;
}

static int answer(struct bench *bench, int host, const struct reply *reply)
{
    return agents_answer(&bench->agents, host, &reply->message.base);
}

/* As at a failure. */
static void ask(struct bench *bench)
{
    libraries_part.incident(&bench->f->job, NULL);
}

/* The caller owns it; NULL: nothing is reported. */
static json_t *seen_by(struct bench *bench)
{
    json_t *root = json_object(), *seen;
    libraries_part.report(&bench->f->job, root);
    seen = json_incref(json_object_get(root, "libraries"));
    json_decref(root);
    return seen;
}

static void test_answers(void **state)
{
    struct bench *bench = *state;
    struct reply reply;
    assert_null(seen_by(bench));
    ask(bench);
    reply_make(&reply, 0, "aaaa", 3);
    assert_int_equal(answer(bench, 0, &reply), 0);
    assert_string_equal(buf_text(&bench->f->said), "");
    reply_make(&reply, 2, "bbbb", 1);
    assert_int_equal(answer(bench, 1, &reply), 0);
    static const char line[] = "ranks of one program have loaded different MPI libraries: rank 0: "
                               "/l/libmpi.so.40.1 (build "
                               "id aaaa); rank 2: /l/libmpi.so.40.1 (build id bbbb)";
    char *said AUTO_FREE = mem_printf("%s; the report shows all (--report)\n", line);
    const char *told = strstr(buf_text(&bench->f->said), said);
    assert_non_null(told);
    for (int i = 0; i < 2; i++) { /* it is told once */
        ask(bench);
        reply_make(&reply, 0, "aaaa", 1);
        answer(bench, 0, &reply);
        reply_make(&reply, 2, "bbbb", 1);
        answer(bench, 1, &reply);
    }
    told = strstr(buf_text(&bench->f->said), said); /* the text may have moved */
    assert_non_null(told);
    assert_null(strstr(told + 1, said));
    assert_non_null(strstr(told, "left out rank 1\n"));
    char *wanted AUTO_FREE = mem_printf(
        "{'files':[{'kind':'mpi','title':'MPI','version':'40.1','build_id':'aaaa','deleted':false,"
        "'path':'/l/libmpi.so.40.1','ranks':[0]},"
        "{'kind':'mpi','title':'MPI','version':'40.1','build_id':'bbbb','deleted':false,"
        "'path':'/l/libmpi.so.40.1','ranks':[2]}],'differences':['%s'],'missing':[1]}",
        line);
    expect_json(seen_by(bench), wanted);
}

static void expect_files(struct bench *bench, size_t count)
{
    json_t *seen = seen_by(bench);
    assert_int_equal(json_array_size(json_object_get(seen, "files")), count);
    json_decref(seen);
}

static void expect_missing(struct bench *bench, const char *wanted)
{
    json_t *seen = seen_by(bench);
    expect_json(json_incref(json_object_get(seen, "missing")), wanted);
    json_decref(seen);
}

/* Ranks that an agent did not come to, and those of an agent that does not answer, are missing.
 * What was seen of them before stays. */
static void test_missing(void **state)
{
    struct bench *bench = *state;
    struct reply reply;
    for (int i = 0; i < 2; i++) {
        ask(bench);
        expect_missing(bench, "[0,1,2]");
        reply_make(&reply, 0, "aaaa", 1 - (size_t)i);
        reply.rank.missing = i == 1;
        assert_int_equal(answer(bench, 0, &reply), 0);
        expect_missing(bench, i == 0 ? "[1,2]" : "[0,1,2]");
        reply_make(&reply, 2, "aaaa", 0);
        assert_int_equal(answer(bench, 1, &reply), 0);
        expect_missing(bench, i == 0 ? "[1]" : "[0,1]");
    }
    expect_files(bench, 1);
}

/* Of what has come, what is about a worker that has ended and left its seat does not count. */
static void test_another_worker_on_a_seat(void **state)
{
    struct bench *bench = *state;
    struct reply reply;
    ask(bench);
    reply_make(&reply, 0, "aaaa", 1);
    assert_int_equal(answer(bench, 0, &reply), 0);
    reply_make(&reply, 0, "aaaa", 1); /* of the other host */
    assert_int_equal(answer(bench, 1, &reply), 0);
    expect_files(bench, 1);
    bench->f->job.ranks.records[0].pid = 4711;
    expect_files(bench, 0);
}

static void test_hostile_answers(void **state)
{
    struct bench *bench = *state;
    struct reply reply;
    char *path AUTO_FREE = mem_alloc(6001);
    memset(path, 'x', 6000);
    path[6000] = '\0';
    for (int i = 0; i < 5; i++) {
        reply_make(&reply, 0, "aaaa", 3);
        switch (i) {
        case 0: reply.files[2].kind = LIBRARY_KINDS; break;
        case 1: reply.files[1].path = path; break;
        case 2: reply.files[1].id = path; break;
        case 3: reply.rank.n_libraries = 40; break;
        default: reply.rank.seat = 3; break;
        }
        ask(bench);
        assert_int_equal(answer(bench, 0, &reply), i < 4 ? -1 : 0); /* no such seat: it is late */
        reply_make(&reply, 2, "aaaa", 0);
        answer(bench, 1, &reply);
        ask_forget(&bench->f->job, job_part(&bench->f->job, libraries));
    }
    expect_files(bench, 0);
    for (int i = 0; i < 2000; i++) { /* files without end */
        char id[16];
        snprintf(id, sizeof(id), "%08x", (unsigned)i);
        reply_make(&reply, 0, id, 3);
        ask(bench);
        assert_int_equal(answer(bench, 0, &reply), 0);
        reply_make(&reply, 2, id, 0);
        assert_int_equal(answer(bench, 1, &reply), 0);
    }
    expect_files(bench, 0); /* there was no room for the last ones */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers, begin, end),
        cmocka_unit_test_setup_teardown(test_missing, begin, end),
        cmocka_unit_test_setup_teardown(test_another_worker_on_a_seat, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile_answers, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
