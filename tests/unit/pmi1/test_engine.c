/* SPDX-License-Identifier: Apache-2.0 */
/* Whole PMI-1 dialogues in one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pmi1/engine.h"
#include "pmi1/request.h"

#define RANKS_MAX 1024
#define SPAWN_TRUE "mcmd=spawn\nnprocs=1\nexecname=true\nendcmd\n"

struct world {
    struct pmi1_engine *engine;
    struct buf sent[RANKS_MAX];
    struct buf upward; /* what barrier_in carried */
    struct buf asked;  /* names and spawns */
    int barriers_in, abort_rank, abort_code;
    bool answers_at_once;
    char *abort_text;
};

static void on_send(void *context, int rank, const char *bytes, size_t length)
{
    struct world *world = context;
    assert_in_range(rank, 0, RANKS_MAX - 1);
    assert_int_equal(buf_append(&world->sent[rank], bytes, length), 0);
}

static void on_abort(void *context, int rank, int code, const char *text)
{
    struct world *world = context;
    world->abort_rank = rank;
    world->abort_code = code;
    free(world->abort_text);
    world->abort_text = mem_strdup(text);
}

static void on_barrier_in(void *context, const char *bytes, size_t length)
{
    struct world *world = context;
    world->barriers_in++;
    buf_clear(&world->upward);
    buf_append(&world->upward, bytes, length);
}

static void on_name(void *context, int rank, enum pmi1_name_request request, const char *service,
                    const char *port)
{
    struct world *world = context;
    assert_int_equal(rank, 1);
    assert_int_equal(port != NULL, request == PMI1_PUBLISH);
    buf_printf(&world->asked, "%d %s %s\n", (int)request, service, port != NULL ? port : "-");
}

static void say_folder(struct buf *out, const char *name, const char *value)
{
    if (value != NULL)
        buf_printf(out, " %s=%s", name, value);
}

static void on_spawn(void *context, int rank, const struct pmi1_spawn *request)
{
    struct world *world = context;
    assert_true(rank == 0 || rank == 3);
    if (world->answers_at_once) {
        pmi1_spawn_reply(world->engine, rank, true);
        return;
    }
    for (size_t i = 0; i < request->app_count; i++) {
        const struct pmi1_spawn_app *app = &request->apps[i];
        buf_printf(&world->asked, "%d of", app->np);
        for (size_t j = 0; j < app->argv.count; j++)
            buf_printf(&world->asked, " [%s]", app->argv.items[j]);
        say_folder(&world->asked, "wdir", app->wdir);
        say_folder(&world->asked, "hosts", app->hosts);
        buf_putc(&world->asked, '\n');
    }
    for (size_t i = 0; i < request->preput.count; i += 2)
        buf_printf(&world->asked, "put %s %s\n", request->preput.items[i],
                   request->preput.items[i + 1]);
}

static void on_spawn_refused(void *context, int rank, const char *what)
{
    struct world *world = context;
    buf_printf(&world->asked, "rank %d refused: %s\n", rank, what);
}

/* What the engine asked its owner since the last look, compared and forgotten. */
static void asked(struct world *world, const char *expected)
{
    assert_string_equal(buf_text(&world->asked), expected);
    buf_clear(&world->asked);
}

static struct world *world_create(int size, int first, int count, const int *ranks_on, int nodes)
{
    struct world *world = mem_alloc(sizeof(*world));
    for (int i = 0; i < RANKS_MAX; i++)
        buf_init(&world->sent[i], 1 << 20);
    buf_init(&world->upward, 1 << 20);
    buf_init(&world->asked, 1 << 20);
    world->abort_rank = -1;
    int local[RANKS_MAX];
    int apps[RANKS_MAX];
    for (int i = 0; i < count; i++) {
        local[i] = first + i;
        apps[i] = i % 2;
    }
    int node_of[RANKS_MAX];
    for (int node = 0, rank = 0; node < nodes; node++) {
        for (int i = 0; i < ranks_on[node]; i++)
            node_of[rank++] = node;
    }
    struct pmi1_config config = {.kvsname = "kvs_test",
                                 .size = size,
                                 .local_ranks = local,
                                 .local_count = count,
                                 .local_apps = apps,
                                 .node_of = node_of,
                                 .node_count = nodes};
    struct pmi1_ops ops = {.send = on_send,
                           .abort = on_abort,
                           .barrier_in = on_barrier_in,
                           .spawn = on_spawn,
                           .spawn_refused = on_spawn_refused,
                           .name = on_name};
    world->engine = pmi1_engine_create(&config, &ops, world);
    return world;
}

static void world_destroy(struct world *world)
{
    pmi1_engine_destroy(world->engine);
    for (int i = 0; i < RANKS_MAX; i++)
        buf_destroy(&world->sent[i]);
    buf_destroy(&world->upward);
    buf_destroy(&world->asked);
    free(world->abort_text);
    free(world);
}

static void say(struct world *world, int rank, const char *text)
{
    struct error err = ERROR_INIT;
    if (pmi1_receive(world->engine, rank, text, strlen(text), &err) < 0)
        fail_msg("%s", err.text);
}

/* What the rank was sent since the last look, compared and forgotten. */
static void heard(struct world *world, int rank, const char *expected)
{
    assert_string_equal(buf_text(&world->sent[rank]), expected);
    buf_clear(&world->sent[rank]);
}

static const int four[] = {4};

static struct world *four_ranks(void)
{
    struct world *world = world_create(4, 0, 4, four, 1);
    for (int rank = 0; rank < 4; rank++) {
        say(world, rank, "cmd=init pmi_version=1 pmi_subversion=1\n");
        heard(world, rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    }
    return world;
}

static void test_opening(void **state)
{
    (void)state;
    struct world *world = four_ranks();
    say(world, 1, "cmd=get_maxes\ncmd=get_appnum\ncmd=get_universe_size\ncmd=get_my_kvsname\n");
    heard(world, 1,
          "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\ncmd=appnum appnum=1\n"
          "cmd=universe_size size=4\ncmd=my_kvsname kvsname=kvs_test\n");
    say(world, 2, "cmd=get kvsname=kvs_test key=PMI_process_mapping \n");
    heard(world, 2, "cmd=get_result rc=0 msg=success value=(vector,(0,1,4))\n");
    world_destroy(world);
}

static void test_version_2_is_refused(void **state)
{
    (void)state;
    struct world *world = world_create(1, 0, 1, (const int[]){1}, 1);
    say(world, 0, "cmd=init pmi_version=2 pmi_subversion=0\n");
    heard(world, 0, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
    assert_int_equal(pmi1_rank_state(world->engine, 0), PMI1_SILENT);
    say(world, 0, "cmd=init pmi_version=1 pmi_subversion=1\n");
    assert_int_equal(pmi1_rank_state(world->engine, 0), PMI1_RUNNING);
    world_destroy(world);
}

static void test_exchange(void **state)
{
    (void)state;
    struct world *world = four_ranks();
    for (int rank = 0; rank < 4; rank++) {
        char *put AUTO_FREE =
            mem_printf("cmd=put kvsname=kvs_test key=card-%d value=at %d = x\n", rank, rank * 11);
        say(world, rank, put);
        heard(world, rank, "cmd=put_result rc=0 msg=success\n");
    }
    for (int rank = 0; rank < 3; rank++) {
        say(world, rank, "cmd=barrier_in\n");
        heard(world, rank, "");
        assert_int_equal(pmi1_rank_state(world->engine, rank), PMI1_BARRIER);
    }
    say(world, 3, "cmd=barrier_in\n");
    for (int rank = 0; rank < 4; rank++) {
        heard(world, rank, "cmd=barrier_out\n");
        assert_int_equal(pmi1_rank_state(world->engine, rank), PMI1_RUNNING);
    }
    assert_int_equal(world->barriers_in, 0);
    say(world, 0, "cmd=get kvsname=kvs_test key=card-3\n");
    heard(world, 0, "cmd=get_result rc=0 msg=success value=at 33 = x\n");
    say(world, 0, "cmd=finalize\n");
    heard(world, 0, "cmd=finalize_ack\n");
    assert_int_equal(pmi1_rank_state(world->engine, 0), PMI1_FINALIZED);
    assert_int_equal(pmi1_rank_state(world->engine, 1), PMI1_RUNNING);
    world_destroy(world);
}

static void test_refusals(void **state)
{
    (void)state;
    struct world *world = four_ranks();
    say(world, 0, "cmd=get kvsname=kvs_test key=none\ncmd=get kvsname=other key=none\n");
    heard(world, 0,
          "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"
          "cmd=get_result rc=-1 msg=kvs_not_found value=unknown\n");
    say(world, 0,
        "cmd=put kvsname=kvs_test key=k value=1\ncmd=put kvsname=kvs_test key=k value=2\n"
        "cmd=put kvsname=other key=k value=1\n");
    heard(world, 0,
          "cmd=put_result rc=0 msg=success\ncmd=put_result rc=-1 msg=duplicate_key\n"
          "cmd=put_result rc=-1 msg=kvs_not_found\n");
    say(world, 0, "cmd=get kvsname=kvs_test key=k\n");
    heard(world, 0, "cmd=get_result rc=0 msg=success value=1\n");

    char key[66];
    memset(key, 'k', 65);
    key[65] = '\0';
    for (int length = 65; length >= 63; length--) {
        key[length] = '\0';
        char *put AUTO_FREE = mem_printf("cmd=put kvsname=kvs_test key=%s value=\n", key);
        say(world, 1, put);
        heard(world, 1,
              length > 63 ? "cmd=put_result rc=-1 msg=key_too_long_or_empty\n"
                          : "cmd=put_result rc=0 msg=success\n");
    }
    char value[1025];
    memset(value, 'v', 1024);
    value[1024] = '\0';
    char *put AUTO_FREE = mem_printf("cmd=put kvsname=kvs_test key=v value=%s\n", value);
    say(world, 1, put);
    heard(world, 1, "cmd=put_result rc=-1 msg=value_too_long\n");
    value[1023] = '\0';
    char *fits AUTO_FREE = mem_printf("cmd=put kvsname=kvs_test key=v value=%s\n", value);
    say(world, 1, fits);
    heard(world, 1, "cmd=put_result rc=0 msg=success\n");
    world_destroy(world);
}

static void test_walk_and_spaces(void **state)
{
    (void)state;
    struct world *world = four_ranks();
    say(world, 0, "cmd=create_kvs\n");
    heard(world, 0, "cmd=newkvs rc=0 kvsname=kvs_test-0-0\n");
    say(world, 0, "cmd=put kvsname=kvs_test-0-0 key=a value=b c\n");
    heard(world, 0, "cmd=put_result rc=0 msg=success\n");
    say(world, 3,
        "cmd=getbyidx kvsname=kvs_test-0-0 idx=0\ncmd=getbyidx kvsname=kvs_test-0-0 idx=1\n"
        "cmd=getbyidx kvsname=no idx=0\n");
    heard(world, 3,
          "cmd=getbyidx_results rc=0 nextidx=1 key=a val=b c\n"
          "cmd=getbyidx_results rc=-2 reason=no_more_keyvals\n"
          "cmd=getbyidx_results rc=-1 reason=kvs_not_found\n");
    say(world, 0, "cmd=destroy_kvs kvsname=kvs_test-0-0\ncmd=destroy_kvs kvsname=kvs_test\n");
    heard(world, 0,
          "cmd=kvs_destroyed rc=0 msg=success\ncmd=kvs_destroyed rc=-1 msg=kvs_not_found\n");
    for (int i = 0; i < 63; i++)
        say(world, 2, "cmd=create_kvs\n");
    buf_clear(&world->sent[2]);
    say(world, 2, "cmd=create_kvs\n");
    heard(world, 2, "cmd=newkvs rc=-1 msg=no_more_kvs\n");
    world_destroy(world);
}

static void test_names(void **state)
{
    (void)state;
    struct world *world = four_ranks();
#define PUBLISH "cmd=publish_name service=the ocean port=tag#0$port#12 3$\n"
#define LOOK_UP "cmd=lookup_name service=a=b\n"
#define UNPUBLISH "cmd=unpublish_name service=far\n"
    static const struct {
        const char *said, *asked;
        enum pmi1_name_request request;
        const char *port, *answer;
    } replies[] = {
        {PUBLISH, "0 the ocean tag#0$port#12 3$\n", PMI1_PUBLISH, "",
         "cmd=publish_result info=ok rc=0 msg=success\n"},
        {PUBLISH, "0 the ocean tag#0$port#12 3$\n", PMI1_PUBLISH, NULL,
         "cmd=publish_result info=failed rc=1 msg=already_published\n"},
        {LOOK_UP, "1 a=b -\n", PMI1_LOOKUP, "over there",
         "cmd=lookup_result info=ok rc=0 port=over there\n"},
        {LOOK_UP, "1 a=b -\n", PMI1_LOOKUP, NULL,
         "cmd=lookup_result info=failed rc=1 msg=not_published\n"},
        {UNPUBLISH, "2 far -\n", PMI1_UNPUBLISH, "",
         "cmd=unpublish_result info=ok rc=0 msg=success\n"},
        {UNPUBLISH, "2 far -\n", PMI1_UNPUBLISH, NULL,
         "cmd=unpublish_result info=failed rc=1 msg=not_published\n"},
    };
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        say(world, 1, replies[i].said);
        asked(world, replies[i].asked);
        heard(world, 1, "");
        pmi1_spawn_reply(world->engine, 1, true); /* that was not the question */
        pmi1_name_reply(world->engine, 1, replies[i].request, replies[i].port);
        pmi1_name_reply(world->engine, 1, replies[i].request, replies[i].port);
        heard(world, 1, replies[i].answer);
    }
    pmi1_name_reply(world->engine, 7, PMI1_LOOKUP, "nobody asked");
    world_destroy(world);
}

/* As long as a value may be, and no longer. */
static void test_long_names(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        struct world *world = four_ranks();
        int length = PMI1_VALUE_MAX - 1 + over;
        char *look AUTO_FREE = mem_printf("cmd=lookup_name service=%0*d\n", length, 0);
        char *publish AUTO_FREE = mem_printf("cmd=publish_name service=s port=%0*d\n", length, 0);
        say(world, 1, look);
        assert_int_equal(world->asked.length > 0, !over);
        heard(world, 1, over ? "cmd=lookup_result info=failed rc=1 msg=too_long\n" : "");
        pmi1_name_reply(world->engine, 1, PMI1_LOOKUP, NULL);
        buf_clear(&world->sent[1]);
        say(world, 1, publish);
        heard(world, 1, over ? "cmd=publish_result info=failed rc=1 msg=too_long\n" : "");
        world_destroy(world);
    }
}

/* Whatever a rank says before it has its answer ends the dialogue, but for an abort. */
static void test_a_rank_that_does_not_wait(void **state)
{
    (void)state;
    static const char *const questions[] = {SPAWN_TRUE, "cmd=lookup_name service=s\n"};
    static const char *const more[] = {"cmd=barrier_in\n", "cmd=finalize\n", "cmd=get_appnum\n",
                                       "mcmd=spawn\n", "cmd=unpublish_name service=s\n"};
    for (size_t i = 0; i < 2; i++) {
        int rank = (int)i; /* as on_spawn() and on_name() want it */
        for (size_t j = 0; j < sizeof(more) / sizeof(more[0]); j++) {
            struct world *world = four_ranks();
            struct error err = ERROR_INIT;
            say(world, rank, questions[i]);
            assert_int_equal(pmi1_receive(world->engine, rank, more[j], strlen(more[j]), &err), -1);
            assert_non_null(strstr(err.text, "before the answer to the last request"));
            pmi1_spawn_reply(world->engine, rank, true);
            pmi1_name_reply(world->engine, rank, PMI1_LOOKUP, NULL);
            heard(world, rank, "");
            world_destroy(world);
        }
        struct world *world = four_ranks();
        say(world, rank, questions[i]);
        say(world, rank, "cmd=abort exitcode=5\n");
        assert_int_equal(world->abort_code, 5);
        pmi1_spawn_reply(world->engine, rank, true);
        heard(world, rank, "");
        world_destroy(world);
    }
}

/* Two ranks at the same time, whose answers come in another order. */
static void test_two_that_spawn(void **state)
{
    (void)state;
    struct world *world = four_ranks();
    say(world, 0, "mcmd=spawn\nnprocs=1\n");
    say(world, 3, "mcmd=spawn\nnprocs=3\nexecname=b\nendcmd\n");
    say(world, 0, "execname=a\nendcmd\n");
    asked(world, "3 of [b]\n1 of [a]\n");
    pmi1_spawn_reply(world->engine, 0, false);
    heard(world, 3, "");
    heard(world, 0, "cmd=spawn_result rc=-1\n");
    pmi1_spawn_reply(world->engine, 3, true);
    heard(world, 3, "cmd=spawn_result rc=0\n");
    world_destroy(world);
}

/* The space of another world is none of its business; an abort is heard inside a block. */
static void test_other_spaces_and_an_abort_inside(void **state)
{
    (void)state;
    struct world *world = four_ranks();
    say(world, 0,
        "cmd=get kvsname=kvs_test_2 key=PARENT_ROOT_PORT_NAME\n"
        "cmd=put kvsname=kvs_test_2 key=a value=b\n");
    heard(world, 0,
          "cmd=get_result rc=-1 msg=kvs_not_found value=unknown\n"
          "cmd=put_result rc=-1 msg=kvs_not_found\n");
    say(world, 0, "mcmd=spawn\nexecname=a\ncmd=abort exitcode=6 msg=enough\narg1=x\n");
    assert_int_equal(world->abort_code, 6);
    assert_string_equal(world->abort_text, "enough");
    asked(world, "");
    world_destroy(world);
}

/* Each line of an argument could be one of the protocol: no program starts. If the end of the
 * request is known, it gets an answer. */
static void test_arguments_with_line_breaks(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        bool answered;
    } breaks[] = {{"x=y", true},
                  {"two", true},
                  {"", true},
                  {"nprocs=7", true},
                  {"execname=b", true},
                  {"argcnt=1", true},
                  {"totspawns=1", false},
                  {"spawnssofar=1", false},
                  {"preput_val_0=x", true},
                  {"preput_num=0", false},
                  {"info_num=0", true},
                  {"info_key_0=host", true},
                  {"arg2=y", false},
                  {"endcmd", false},
                  {"cmd=get_appnum", false},
                  {"mcmd=spawn", false}};
    for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
        for (int early = 0; early < 2; early++) { /* MPICH's order has changed */
            struct world *world = four_ranks();
            struct error err = ERROR_INIT;
            char *text AUTO_FREE = mem_printf(
                "mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=1\nspawnssofar=1\n%s"
                "arg1=1\n%s\n%spreput_num=1\npreput_key_0=k\npreput_val_0=v\ninfo_num=0\n"
                "endcmd\n",
                early ? "argcnt=1\n" : "", breaks[i].rest, early ? "" : "argcnt=1\n");
            int result = pmi1_receive(world->engine, 0, text, strlen(text), &err);
            if ((result == 0) != breaks[i].answered)
                fail_msg("'%s': %d %s", breaks[i].rest, result, err.text);
            if (result == 0) {
                heard(world, 0, "cmd=spawn_result rc=-1\n");
                assert_non_null(strstr(buf_text(&world->asked), "rank 0 refused: "));
                assert_null(strstr(buf_text(&world->asked), "1 of "));
            }
            world_destroy(world);
        }
    }
}

static void refused(const char *request, const char *what)
{
    struct world *world = four_ranks();
    say(world, 0, request);
    if (strstr(buf_text(&world->asked), what) == NULL)
        fail_msg("'%s' is not in '%s'", what, buf_text(&world->asked));
    assert_memory_equal(buf_text(&world->asked), "rank 0 refused: ", strlen("rank 0 refused: "));
    buf_clear(&world->asked);
    heard(world, 0, "cmd=spawn_result rc=-1\n");
    assert_int_equal(pmi1_rank_state(world->engine, 0), PMI1_RUNNING);
    say(world, 0, SPAWN_TRUE); /* the next one is as good as any */
    asked(world, "1 of [true]\n");
    pmi1_spawn_reply(world->engine, 0, true);
    heard(world, 0, "cmd=spawn_result rc=0\n");
    world_destroy(world);
}

/* Another library than MPICH may say more, or something else: this request fails, the job goes on.
 */
#define ONE_OF_ONE "mcmd=spawn\ntotspawns=1\nspawnssofar=1\n"

static void test_requests_of_other_libraries(void **state)
{
    (void)state;
    refused(ONE_OF_ONE "execname=a\nhat=1\nscarf=2\nendcmd\n",
            "the line hat, which is unknown to hvdrun; perhaps");
    refused(ONE_OF_ONE "execname=a\n\033[2J=1\nendcmd\n", " a line, which is unknown");
    refused(ONE_OF_ONE "execname=a\nhello\nendcmd\n", "not NAME=VALUE");
    refused(ONE_OF_ONE "execname=a\narg=1\nendcmd\n", "unknown");
    refused(ONE_OF_ONE "execname=a\narg2=b\nendcmd\n", "the line arg2, which is not in its order");
    refused(ONE_OF_ONE "execname=a\nnprocs=1\nnprocs=1\nendcmd\n", "nprocs, which is repeated");
    refused(ONE_OF_ONE "execname=a\nexecname=b\nendcmd\n", "execname, which is repeated");
    refused(ONE_OF_ONE "endcmd\n", "no program");
    refused(ONE_OF_ONE "execname=\nendcmd\n", "a program without a name");
    refused(ONE_OF_ONE "argcnt=1\narg1=a\nexecname=a\nendcmd\n", "an argument before the program");
    refused(ONE_OF_ONE "execname=a\npreput_key_0=k\nendcmd\n", "a key without its value");
    refused(ONE_OF_ONE "execname=a\npreput_key_0=k\npreput_key_1=k\nendcmd\n",
            "a key without its value");
    refused(ONE_OF_ONE "execname=a\npreput_key_0=\nendcmd\n", "an empty key");
    refused(ONE_OF_ONE "execname=a\npreput_num=1\npreput_val_0=v\nendcmd\n",
            "a value without its key");
    refused(ONE_OF_ONE "execname=a\ninfo_num=1\ninfo_val_0=v\nendcmd\n", "a value without its key");
    refused(ONE_OF_ONE "execname=a\npreput_num=2\npreput_key_0=k\npreput_val_0=v\n"
                       "preput_key_1=k\npreput_val_1=v\nendcmd\n",
            "a key that has a value");
    refused(ONE_OF_ONE "execname=a\npreput_num=1\npreput_key_0=PMI_process_mapping\n"
                       "preput_val_0=v\nendcmd\n",
            "a key that has a value");
    refused(ONE_OF_ONE "execname=a\nleft\r\nendcmd\n", "not NAME=VALUE");
    /* the counts have other names, or other values than numbers */
    refused(ONE_OF_ONE "execname=a\nargc=1\narg1=x\nendcmd\n", "the line argc, which is unknown");
    refused(ONE_OF_ONE "execname=a\narg1=x\nendcmd\n", "lines arg without a line argcnt");
    refused(ONE_OF_ONE "execname=a\nargcnt=x\narg1=x\nendcmd\n",
            "the line argcnt, which is not a number in its range");
    refused(ONE_OF_ONE "execname=a\nnprocs=soft\nendcmd\n",
            "the line nprocs, which is not a number in its range");
    refused(ONE_OF_ONE "execname=a\nnprocs=-1\nendcmd\n", "not a number in its range");
    /* one of two programs: both are refused, with one answer */
    refused("mcmd=spawn\nexecname=a\nhat=1\ntotspawns=2\nspawnssofar=1\nendcmd\n"
            "mcmd=spawn\nexecname=b\ntotspawns=2\nspawnssofar=2\nendcmd\n",
            "the line hat");
    refused("mcmd=spawn\nexecname=a\ntotspawns=2\nspawnssofar=1\nendcmd\n"
            "mcmd=spawn\nhat=1\nexecname=b\ntotspawns=2\nspawnssofar=2\nendcmd\n",
            "the line hat");
}

/* Of a key or a value that is as long as may be, and one byte longer. */
static void test_long_preputs(void **state)
{
    (void)state;
    for (int key = PMI1_KEY_MAX - 1; key <= PMI1_KEY_MAX; key++) {
        for (int value = PMI1_VALUE_MAX - 1; value <= PMI1_VALUE_MAX; value++) {
            struct world *world = four_ranks();
            char *text AUTO_FREE =
                mem_printf(ONE_OF_ONE "execname=a\npreput_num=1\n"
                                      "preput_key_0=%0*d\npreput_val_0=%0*d\nendcmd\n",
                           key, 1, value, 2);
            say(world, 0, text);
            const char *said = key == PMI1_KEY_MAX       ? "refused: a key that is too long\n"
                               : value == PMI1_VALUE_MAX ? "refused: a value that is too long\n"
                                                         : "0002\n";
            assert_non_null(strstr(buf_text(&world->asked), said));
            world_destroy(world);
        }
    }
}

/* Something in a request is refused at once. Its end does not come, or it is in doubt. */
static void test_refused_requests_without_an_end(void **state)
{
    (void)state;
    static const char *const unended[] = {
        ONE_OF_ONE "execname=a\nhello world\n", ONE_OF_ONE "execname=a\nhat=1\nargcnt",
        "mcmd=spawn\ntotspawns=2\nspawnssofar=1\nexecname=a\nhat=1\nendcmd\n",
        ONE_OF_ONE "execname=a\nhat=1\nendcmd\nr"};
    for (size_t i = 0; i < sizeof(unended) / sizeof(unended[0]); i++) {
        struct world *world = four_ranks();
        struct error err = ERROR_INIT;
        assert_int_equal(pmi1_spawn_unended(world->engine, 0, &err), 0);
        say(world, 0, "mcmd=spawn\n");
        assert_int_equal(pmi1_spawn_unended(world->engine, 0, &err), 0);
        say(world, 0, unended[i] + strlen("mcmd=spawn\n"));
        assert_non_null(strstr(buf_text(&world->asked), "rank 0 refused: "));
        pmi1_spawn_reply(world->engine, 0, true); /* to another request */
        heard(world, 0, "");
        assert_int_equal(pmi1_spawn_unended(world->engine, 0, &err), -1);
        assert_non_null(strstr(err.text, "rank 0 does not speak PMI-1"));
        assert_non_null(strstr(err.text, "a spawn without an end"));
        assert_int_equal(pmi1_rank_state(world->engine, 0), PMI1_BROKEN);
        assert_int_equal(pmi1_spawn_unended(world->engine, 0, &err), 0); /* once */
        say(world, 0, "\nendcmd\n");
        heard(world, 0, "");
        world_destroy(world);
    }
    struct world *world = four_ranks();
    say(world, 0, ONE_OF_ONE "execname=a\nhat=1\n");
    say(world, 0, "endcmd\n");
    heard(world, 0, "cmd=spawn_result rc=-1\n");
    assert_int_equal(pmi1_spawn_unended(world->engine, 0, NULL), 0);
    say(world, 0, "mcmd=spawn\nhat=1\ncmd=abort exitcode=3\n");
    assert_int_equal(pmi1_spawn_unended(world->engine, 0, NULL), 0);
    assert_int_equal(pmi1_spawn_unended(world->engine, 9, NULL), 0); /* nobody */
    world_destroy(world);
}

/* As MPICH writes it, for two programs at once. */
static void test_spawn(void **state)
{
    (void)state;
    struct world *world = four_ranks();
    say(world, 0,
        "mcmd=spawn\nnprocs=2\nexecname=./a\ntotspawns=2\nspawnssofar=1\nargcnt=2\narg1=one\n"
        "arg2=two words = 2\npreput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\n"
        "preput_val_0=tag#0$x y=$\ninfo_num=3\ninfo_key_0=wdir\ninfo_val_0=/tmp\n"
        "info_key_1=host\ninfo_val_1=a,b:2\ninfo_key_2=soft\ninfo_val_2=1:2\nendcmd\n");
    asked(world, "");
    say(world, 0,
        "mcmd=spawn\nnprocs=0\nexecname=b\ntotspawns=2\nspawnssofar=2\nargcnt=1\narg1=c\r\n"
        "preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=tag#0$x y=$\n"
        "info_num=1\ninfo_key_0=path\ninfo_val_0=/bin\nendcmd\n");
    asked(world, "2 of [./a] [one] [two words = 2] wdir=/tmp hosts=a,b:2\n0 of [/bin/b] [c\r]\n"
                 "put PARENT_ROOT_PORT_NAME tag#0$x y=$\n");
    heard(world, 0, "");
    pmi1_spawn_reply(world->engine, 0, true);
    heard(world, 0, "cmd=spawn_result rc=0\n");
    pmi1_spawn_reply(world->engine, 0, true); /* nobody waits for it */
    pmi1_spawn_reply(world->engine, 7, true);
    heard(world, 0, "");
    say(world, 0, SPAWN_TRUE);
    asked(world, "1 of [true]\n");
    pmi1_spawn_reply(world->engine, 0, false);
    heard(world, 0, "cmd=spawn_result rc=-1\n");
    say(world, 0, "cmd=get_appnum\n");
    heard(world, 0, "cmd=appnum appnum=0\n");
    world_destroy(world);
}

/* The ranks of a spawned world, of which only the second and the last of four nodes have some. */
static void test_a_spawned_world(void **state)
{
    (void)state;
    struct world *world = four_ranks();
    pmi1_engine_destroy(world->engine);
    static const int local[] = {0}, node_of[] = {1, 3};
    char *pairs[] = {(char *)"PARENT_ROOT_PORT_NAME", (char *)"port #1", (char *)"k", (char *)""};
    struct pmi1_config config = {.kvsname = "kvs_2",
                                 .size = 2,
                                 .universe_size = 9,
                                 .local_ranks = local,
                                 .local_count = 1,
                                 .node_of = node_of,
                                 .node_count = 4,
                                 .spawned = true,
                                 .preput = pairs,
                                 .preput_count = 4};
    const struct pmi1_ops ops = {.send = on_send};
    world->engine = pmi1_engine_create(&config, &ops, world);
    say(world, 0,
        "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get kvsname=kvs_2 key=PMI_process_mapping\n"
        "cmd=get kvsname=kvs_2 key=PARENT_ROOT_PORT_NAME\ncmd=get kvsname=kvs_2 key=k\n"
        "cmd=get_universe_size\n");
    heard(world, 0,
          "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
          "cmd=get_result rc=0 msg=success value=(vector,(0,2,1))\n"
          "cmd=get_result rc=0 msg=success value=port #1\n"
          "cmd=get_result rc=0 msg=success value=\ncmd=universe_size size=9\n");
    AUTO_STRV struct strv env = STRV_INIT;
    pmi1_worker_env(world->engine, 0, 9, &env);
    assert_string_equal(strv_env_get(&env, "PMI_SPAWNED"), "1");
    world_destroy(world);
}

static void test_abort(void **state)
{
    (void)state;
    struct world *world = four_ranks();
    say(world, 2, "cmd=abort exitcode=77 msg=no more coal\n");
    assert_int_equal(world->abort_rank, 2);
    assert_int_equal(world->abort_code, 77);
    assert_string_equal(world->abort_text, "no more coal");
    assert_int_equal(pmi1_rank_state(world->engine, 2), PMI1_ABORTED);
    say(world, 2, "cmd=barrier_in\nrubbish"); /* nobody listens any more */
    assert_int_equal(pmi1_rank_state(world->engine, 2), PMI1_ABORTED);
    heard(world, 2, "");
    say(world, 1, "cmd=barrier_in\ncmd=abort\n");
    assert_int_equal(world->abort_rank, 1);
    assert_int_equal(world->abort_code, 1);
    say(world, 3, "cmd=abort exitcode=9 message=called MPI_Abort(MPI_COMM_WORLD, 9) = the end\n");
    assert_int_equal(world->abort_rank, 3);
    assert_int_equal(world->abort_code, 9);
    assert_string_equal(world->abort_text, "called MPI_Abort(MPI_COMM_WORLD, 9) = the end");
    world_destroy(world);
}

/* The whole dialogue of a rank, cut in two at every byte, and fed byte by byte. */
static void test_every_split(void **state)
{
    (void)state;
    static const char dialogue[] =
        "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_maxes\r\n"
        "cmd=put kvsname=kvs_test key=a value=b\nmcmd=spawn\nnprocs=1\nexecname=a\nendcmd\n"
        "cmd=barrier_in\ncmd=get kvsname=kvs_test key=a\ncmd=finalize\n";
    static const char answers[] =
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
        "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"
        "cmd=put_result rc=0 msg=success\ncmd=spawn_result rc=0\n"
        "cmd=barrier_out\ncmd=get_result rc=0 msg=success value=b\ncmd=finalize_ack\n";
    size_t length = strlen(dialogue);
    for (size_t cut = 0; cut <= length; cut++) {
        struct world *world = world_create(1, 0, 1, (const int[]){1}, 1);
        world->answers_at_once = true;
        assert_int_equal(pmi1_receive(world->engine, 0, dialogue, cut, NULL), 0);
        assert_int_equal(pmi1_receive(world->engine, 0, dialogue + cut, length - cut, NULL), 0);
        heard(world, 0, answers);
        world_destroy(world);
    }
    struct world *world = world_create(1, 0, 1, (const int[]){1}, 1);
    world->answers_at_once = true;
    for (size_t i = 0; i < length; i++)
        assert_int_equal(pmi1_receive(world->engine, 0, dialogue + i, 1, NULL), 0);
    heard(world, 0, answers);
    world_destroy(world);
}

static void breaks(const char *bytes, size_t length, const char *expected)
{
    struct world *world = world_create(8, 4, 4, (const int[]){4, 4}, 2);
    struct error err = ERROR_INIT;
    say(world, 6, "cmd=init pmi_version=1 pmi_subversion=1\n");
    buf_clear(&world->sent[6]);
    if (pmi1_receive(world->engine, 6, bytes, length, &err) == 0)
        fail_msg("'%.60s' was taken, no word of '%s'", bytes, expected);
    assert_non_null(strstr(err.text, "rank 6"));
    if (strstr(err.text, expected) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, expected);
    assert_int_equal(pmi1_rank_state(world->engine, 6), PMI1_BROKEN);
    buf_clear(&world->sent[6]);
    say(world, 6, "cmd=get_maxes\n"); /* ignored from here on */
    heard(world, 6, "");
    world_destroy(world);
}

#define BREAKS(text, expected) breaks((text), sizeof(text) - 1, (expected))

static void test_rubbish(void **state)
{
    (void)state;
    BREAKS("\n", "empty");
    BREAKS("cmd=destroy_kvs\n", "destroy_kvs without kvsname=");
    BREAKS("cmd=getbyidx kvsname=kvs_test\n", "getbyidx without idx=");
    BREAKS("cmd=get key=k\n", "get without kvsname=");
    BREAKS("cmd=put kvsname=kvs_test key=k\n", "put without value=");
    BREAKS("cmd=publish_name service=s\n", "publish_name without port=");
    BREAKS("cmd=lookup_name\n", "lookup_name without service=");
    BREAKS("hello world\n", "NAME=VALUE");
    BREAKS("=x\n", "NAME=VALUE");
    BREAKS("key=x cmd=get\n", "cmd=");
    BREAKS("cmd=\033[2J\n", "unprintable");
    BREAKS("cmd=dance\n", "dance");
    BREAKS("cmd=get\n", "kvsname");
    BREAKS("cmd=put kvsname=k key=a\n", "value");
    BREAKS("cmd=get_max\0es\n", "zero byte");
    BREAKS("cmd=init pmi_version=1\n", "twice");
    BREAKS("cmd=barrier_in\ncmd=barrier_in\n", "second barrier_in");
    BREAKS("cmd=barrier_in\ncmd=finalize\n", "barrier");
    BREAKS("cmd=finalize\ncmd=get_maxes\n", "after the end");
    BREAKS("cmd=abort exitcode=x\n", "x");
    BREAKS("cmd=spawn\n", "without its lines");
    BREAKS("cmd=barrier_in\nmcmd=spawn\n", "may not come now");
    BREAKS("mcmd=spawn\nmcmd=spawn\n", "may not come now");
    BREAKS("mcmd=spawn\ncmd=get_maxes\n", "inside a spawn");
    BREAKS("mcmd=spawn\ncmd=\n", "unprintable");
    BREAKS("mcmd=spawn\nexecname=a\nargcnt=1\nhat=1\nendcmd\n", "not as many");
    /* the end is in doubt */
    BREAKS("mcmd=spawn\nexecname=a\nhat=1\nendcmd\n", "cannot read, without totspawns");
    BREAKS("mcmd=spawn\nexecname=a\nhat=1\ntotspawns=1\nendcmd\n", "without spawnssofar");
    BREAKS("mcmd=spawn\nexecname=a\nhat=1\nspawnssofar=1\nendcmd\n", "without totspawns");
    BREAKS("mcmd=spawn\nexecname=/bin/x\ntotspawns=2\ntotspawns=1\nspawnssofar=1\nendcmd\n",
           "a second totspawns");
    BREAKS("mcmd=spawn\nexecname=/bin/x\nspawnssofar=1\ntotspawns=1\nspawnssofar=1\nendcmd\n",
           "a second spawnssofar");
    BREAKS("mcmd=spawn\nexecname=a\nhat=1\ntotspawns=2\nspawnssofar=1\nendcmd\n"
           "mcmd=spawn\nexecname=b\nendcmd\n",
           "without totspawns");
    BREAKS("mcmd=spawn\nexecname=a\nhat=1\nendcmd\nmcmd=spawn\nexecname=b\nendcmd\n",
           "without totspawns");
    BREAKS("mcmd=spawn\nexecname=a\ntotalspawns=2\nspawnssofar=1\nendcmd\n", "without totspawns");
    BREAKS(ONE_OF_ONE "execname=a\nhat=1\nendcmd\nmcmd=spawn\nexecname=b\nendcmd\n",
           "before the answer to the last request");
    BREAKS(ONE_OF_ONE "execname=a\narg1=x\nendcmd\nargcnt=1\nendcmd\n", "begin with cmd=");
    BREAKS("mcmd=spawn\r\nexecname=a\r\nargcnt=1\r\nendcmd\r\n", "behind endcmd");
    BREAKS("mcmd=spawn\r\ntotspawns=1\r\nendcmd\r\n", "totspawns is not a number");
    BREAKS("mcmd=spawn\nexecname=a\nargcnt=1\nendcmd \n", "behind endcmd");
    BREAKS("mcmd=spawn\nx=\0\n", "zero byte");
    BREAKS("mcmd=spawn\nexecname=a\nargcnt=2\narg1=x\nendcmd\n", "not as many");
    BREAKS("mcmd=spawn\nexecname=a\nspawnssofar=2\nendcmd\n", "order");
    BREAKS("mcmd=spawn\nexecname=a\ninfo_num=1\nendcmd\n", "not as many");
    BREAKS("mcmd=spawn\nexecname=a\npreput_num=1\nendcmd\n", "not as many");
    BREAKS("mcmd=spawn\ntotspawns=0\n", "number");
    BREAKS("mcmd=spawn\ntotspawns=5000\n", "number");
    BREAKS("mcmd=spawn\nexecname=a\ntotspawns=2\nendcmd\nmcmd=spawn\nexecname=a\nendcmd\n",
           "changes");
    BREAKS("mcmd=spawn\nexecname=a\ntotspawns=2\nendcmd\ncmd=get_maxes\n", "inside a spawn");
    BREAKS("cmd=getbyidx kvsname=kvs_test idx=-1\n", "-1");
    BREAKS("cmd=getbyidx kvsname=kvs_test idx=2147483647\n", "2147483647");
    breaks("cmd=a a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1\n", 75,
           "words");
    static char endless[5000];
    memset(endless, 'x', sizeof(endless));
    breaks(endless, sizeof(endless), "bytes");
    struct world *world = world_create(1, 0, 1, (const int[]){1}, 1);
    struct error err = ERROR_INIT;
    assert_int_equal(pmi1_receive(world->engine, 0, "cmd=get_maxes\n", 14, &err), -1);
    assert_non_null(strstr(err.text, "before init"));
    assert_int_equal(pmi1_receive(world->engine, 5, "cmd=get_maxes\n", 14, &err), -1);
    assert_non_null(strstr(err.text, "rank 5"));
    world_destroy(world);
}

/* An endless line that comes in small pieces must not pile up. */
static void test_slow_endless_line(void **state)
{
    (void)state;
    struct world *world = world_create(1, 0, 1, (const int[]){1}, 1);
    int result = 0;
    for (int i = 0; i < 5000 && result == 0; i++)
        result = pmi1_receive(world->engine, 0, "x", 1, NULL);
    assert_int_equal(result, -1);
    world_destroy(world);
}

static void test_random_bytes(void **state)
{
    (void)state;
    static const char *const words[] = {
        "cmd=",   "mcmd=spawn", "\n",       " ",    "put ", "get ",
        "init ",  "kvsname=",   "key=a",    "idx=", "1",    "\0",
        "endcmd", "value=",     "kvs_test", "=",    "\xff", "execname="};
    uint32_t seed = 12345;
    int broken = 0;
    for (int round = 0; round < 3000; round++) {
        struct world *world = world_create(2, 0, 2, (const int[]){2}, 1);
        int result = 0;
        say(world, 0, "cmd=init pmi_version=1 pmi_subversion=1\n");
        for (int i = 0; i < 30 && result == 0; i++) {
            seed = seed * 1103515245u + 12345u;
            const char *word = words[(seed >> 16) % (sizeof(words) / sizeof(words[0]))];
            size_t length = *word == '\0' ? 1 : strlen(word);
            result = pmi1_receive(world->engine, 0, word, length, NULL);
        }
        broken += result < 0;
        world_destroy(world);
    }
    assert_in_range(broken, 1000, 3000);
}

static void open_all(struct world *world, int first, int count)
{
    for (int rank = first; rank < first + count; rank++) {
        say(world, rank, "cmd=init pmi_version=1 pmi_subversion=1\n");
        buf_clear(&world->sent[rank]);
    }
}

static void test_two_nodes(void **state)
{
    (void)state;
    static const int nodes[] = {2, 1};
    struct world *a = world_create(3, 0, 2, nodes, 2);
    struct world *b = world_create(3, 2, 1, nodes, 2);
    open_all(a, 0, 2);
    open_all(b, 2, 1);
    say(a, 0, "cmd=get kvsname=kvs_test key=PMI_process_mapping\n");
    heard(a, 0, "cmd=get_result rc=0 msg=success value=(vector,(0,1,2),(1,1,1))\n");
    say(a, 0, "cmd=put kvsname=kvs_test key=a0 value=x y\n");
    say(a, 1, "cmd=put kvsname=kvs_test key=a1 value=\n");
    heard(a, 0, "cmd=put_result rc=0 msg=success\n");
    say(b, 2, "cmd=put kvsname=kvs_test key=b2 value=z\ncmd=barrier_in\n");
    assert_int_equal(b->barriers_in, 1);
    assert_string_equal(buf_text(&b->upward), "kvs_test b2 z\n");
    struct error err = ERROR_INIT;
    assert_int_equal(pmi1_barrier_out(a->engine, "", 0, &err), -1); /* too early */
    say(a, 0, "cmd=barrier_in\n");
    say(a, 1, "cmd=barrier_in\n");
    assert_string_equal(buf_text(&a->upward), "kvs_test a0 x y\nkvs_test a1 \n");
    buf_append(&a->upward, buf_text(&b->upward), b->upward.length);
    buf_clear(&a->sent[0]);
    buf_clear(&b->sent[2]);
    size_t length = a->upward.length;
    assert_int_equal(pmi1_barrier_out(a->engine, buf_text(&a->upward), length, &err), 0);
    assert_int_equal(pmi1_barrier_out(b->engine, buf_text(&a->upward), length, &err), 0);
    heard(a, 0, "cmd=barrier_out\n");
    heard(b, 2, "cmd=barrier_out\n");
    say(a, 0, "cmd=get kvsname=kvs_test key=b2\n");
    heard(a, 0, "cmd=get_result rc=0 msg=success value=z\n");
    say(b, 2, "cmd=get kvsname=kvs_test key=a0\ncmd=get kvsname=kvs_test key=a1\n");
    heard(b, 2,
          "cmd=get_result rc=0 msg=success value=x y\n"
          "cmd=get_result rc=0 msg=success value=\n");

    say(b, 2, "cmd=barrier_in\n");
    assert_int_equal(b->upward.length, 0); /* nothing new since the last one */
    assert_int_equal(pmi1_barrier_out(b->engine, "kvs_test a", 10, &err), -1);
    assert_int_equal(pmi1_barrier_out(b->engine, "kvs_test\n", 9, &err), -1);
    assert_int_equal(pmi1_barrier_out(b->engine, "k\0 a b\n", 7, &err), -1);
    assert_int_equal(pmi1_barrier_out(b->engine, "kvs_test k a\0b\n", 15, &err), -1);
    world_destroy(a);
    world_destroy(b);
}

/* As --map-by node leaves them on the second of two nodes. */
static void test_ranks_that_do_not_follow_each_other(void **state)
{
    (void)state;
    struct world *world = world_create(4, 0, 1, (const int[]){4}, 1);
    pmi1_engine_destroy(world->engine);
    static const int local[] = {1, 3}, node_of[] = {0, 1, 0, 1};
    struct pmi1_config config = {.kvsname = "kvs_test",
                                 .size = 4,
                                 .local_ranks = local,
                                 .local_count = 2,
                                 .node_of = node_of,
                                 .node_count = 2};
    struct pmi1_ops ops = {
        .send = on_send, .abort = on_abort, .barrier_in = on_barrier_in, .spawn = on_spawn};
    world->engine = pmi1_engine_create(&config, &ops, world);
    open_all(world, 1, 1);
    open_all(world, 3, 1);
    say(world, 3, "cmd=get kvsname=kvs_test key=PMI_process_mapping\n");
    heard(world, 3, "cmd=get_result rc=0 msg=success value=(vector,(0,2,1),(0,2,1))\n");
    say(world, 3, "cmd=get_appnum\n"); /* without a list of programs, there is one */
    heard(world, 3, "cmd=appnum appnum=0\n");
    say(world, 1, "cmd=barrier_in\n");
    assert_int_equal(world->barriers_in, 0);
    say(world, 3, "cmd=barrier_in\n");
    assert_int_equal(world->barriers_in, 1);
    struct error err = ERROR_INIT;
    assert_int_equal(pmi1_receive(world->engine, 2, "cmd=get_maxes\n", 14, &err), -1);
    AUTO_STRV struct strv env = STRV_INIT;
    pmi1_worker_env(world->engine, 3, 9, &env);
    assert_string_equal(strv_env_get(&env, "PMI_RANK"), "3");
    assert_string_equal(strv_env_get(&env, "MPI_LOCALRANKID"), "1");
    world_destroy(world);
}

static void test_many_ranks(void **state)
{
    (void)state;
    struct world *world = world_create(RANKS_MAX, 0, RANKS_MAX, (const int[]){RANKS_MAX}, 1);
    open_all(world, 0, RANKS_MAX);
    for (int rank = 0; rank < RANKS_MAX; rank++) {
        for (int i = 0; i < 10; i++) {
            char *put AUTO_FREE =
                mem_printf("cmd=put kvsname=kvs_test key=card-%d-%d value=%d\n", rank, i, rank + i);
            say(world, rank, put);
        }
        buf_clear(&world->sent[rank]);
        say(world, rank, "cmd=barrier_in\n");
    }
    for (int rank = 0; rank < RANKS_MAX; rank++) {
        heard(world, rank, "cmd=barrier_out\n");
        int other = (rank * 7 + 3) % RANKS_MAX;
        char *get AUTO_FREE = mem_printf("cmd=get kvsname=kvs_test key=card-%d-9\n", other);
        char *value AUTO_FREE = mem_printf("cmd=get_result rc=0 msg=success value=%d\n", other + 9);
        say(world, rank, get);
        heard(world, rank, value);
    }
    world_destroy(world);
}

static void test_worker_env(void **state)
{
    (void)state;
    struct world *world = world_create(8, 4, 4, (const int[]){4, 4}, 2);
    struct strv env AUTO_STRV = STRV_INIT;
    strv_add(&env, "PMI_RANK=99");
    pmi1_worker_env(world->engine, 6, 17, &env);
    assert_string_equal(strv_env_get(&env, "PMI_RANK"), "6");
    assert_string_equal(strv_env_get(&env, "PMI_SIZE"), "8");
    assert_string_equal(strv_env_get(&env, "PMI_FD"), "17");
    assert_string_equal(strv_env_get(&env, "MPI_LOCALRANKID"), "2");
    assert_string_equal(strv_env_get(&env, "MPI_LOCALNRANKS"), "4");
    assert_null(strv_env_get(&env, "PMI_SPAWNED"));
    assert_int_equal(env.count, 6);
    world_destroy(world);
}

/* A barrier is for all: it does not end over one that has left it, by an abort or by rubbish. */
static void test_a_barrier_that_one_has_left(void **state)
{
    (void)state;
    for (int rubbish = 0; rubbish < 2; rubbish++) {
        struct world *world = four_ranks();
        say(world, 0, "cmd=barrier_in\n");
        if (rubbish != 0)
            assert_int_equal(pmi1_receive(world->engine, 0, "x\n", 2, NULL), -1);
        else
            say(world, 0, "cmd=abort exitcode=1\n");
        for (int rank = 1; rank < 4; rank++)
            say(world, rank, "cmd=barrier_in\n");
        for (int rank = 0; rank < 4; rank++)
            heard(world, rank, "");
        assert_int_equal(pmi1_rank_state(world->engine, 3), PMI1_BARRIER);
        world_destroy(world);
    }
}

static void test_one_barrier_after_the_other(void **state)
{
    (void)state;
    struct world *world = four_ranks();
    for (int round = 0; round < 3; round++) {
        for (int rank = 0; rank < 4; rank++) {
            for (int other = 0; other < 4; other++)
                heard(world, other, "");
            say(world, (rank + round) % 4, "cmd=barrier_in\n");
        }
        for (int rank = 0; rank < 4; rank++)
            heard(world, rank, "cmd=barrier_out\n");
    }
    world_destroy(world);
}

static void test_init_without_a_version(void **state)
{
    (void)state;
    struct world *world = world_create(1, 0, 1, (const int[]){1}, 1);
    struct error err = ERROR_INIT;
    assert_int_equal(pmi1_receive(world->engine, 0, "cmd=init\n", 9, &err), -1);
    assert_non_null(strstr(err.text, "init without pmi_version="));
    heard(world, 0, "");
    world_destroy(world);
}

/* A long argument passes; a longer one, more bytes in all, or more programs end the dialogue. */
static void test_floods_of_spawn(void **state)
{
    (void)state;
    static const struct {
        size_t length;
        int times;
        const char *why; /* NULL: it is taken */
    } floods[] = {{PMI1_SPAWN_LINE_MAX - 8, 2, NULL},
                  {PMI1_SPAWN_LINE_MAX, 1, "bytes"},
                  {PMI1_SPAWN_LINE_MAX - 8, 100, "MiB"}};
    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        struct world *world = four_ranks();
        struct error err = ERROR_INIT;
        say(world, 0, "mcmd=spawn\nexecname=a\n");
        int result = 0;
        for (int n = 1; n <= floods[i].times && result == 0; n++) {
            char *line AUTO_FREE = mem_printf("arg%d=%0*d\n", n, (int)floods[i].length, 0);
            result = pmi1_receive(world->engine, 0, line, strlen(line), &err);
        }
        assert_int_equal(result, floods[i].why == NULL ? 0 : -1);
        assert_true(floods[i].why == NULL || strstr(err.text, floods[i].why) != NULL);
        world_destroy(world);
    }
    struct world *world = four_ranks();
    struct error err = ERROR_INIT;
    int blocks = 0;
    static const char block[] = "mcmd=spawn\nexecname=a\ntotspawns=4096\nendcmd\n";
    while (pmi1_receive(world->engine, 0, block, strlen(block), &err) == 0 && blocks < 5000)
        blocks++;
    assert_int_equal(blocks, PMI1_SPAWN_APPS_MAX); /* then it still waits for its answer */
    world_destroy(world);
}

/* A flood of them is refused, and none is kept. */
static void test_a_flood_of_preput(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    for (int pairs = SPAWN_PREPUT_MAX; pairs < 1000; pairs += 900) {
        struct world *world = four_ranks();
        buf_clear(&text);
        buf_printf(&text, ONE_OF_ONE "execname=a\npreput_num=%d\n", pairs);
        for (int i = 0; i < pairs; i++)
            buf_printf(&text, "preput_key_%d=k%d\npreput_val_%d=v\n", i, i, i);
        buf_puts(&text, "endcmd\n");
        say(world, 0, buf_text(&text));
        if (pairs == SPAWN_PREPUT_MAX)
            assert_non_null(strstr(buf_text(&world->asked), "put k63 v\n"));
        else
            assert_non_null(strstr(buf_text(&world->asked), "too many keys"));
        world_destroy(world);
    }
}

/* The longest line is answered, in one piece or in two; one byte more ends the dialogue. */
static void test_the_longest_line(void **state)
{
    (void)state;
    enum { LONGEST = PMI1_LINE_MAX - 1 };
    for (int over = 0; over < 2; over++) {
        for (int pieces = 1; pieces <= 2; pieces++) {
            struct world *world = four_ranks();
            struct error err = ERROR_INIT;
            size_t length = LONGEST + (size_t)over, cut = pieces == 1 ? 0 : length / 2;
            char *line AUTO_FREE = mem_alloc(length + 1);
            memset(line, ' ', length);
            memcpy(line, "cmd=get_appnum", strlen("cmd=get_appnum"));
            line[length] = '\n';
            int result = pmi1_receive(world->engine, 0, line, cut, &err);
            if (result == 0)
                result = pmi1_receive(world->engine, 0, line + cut, length + 1 - cut, &err);
            assert_int_equal(result, over != 0 ? -1 : 0);
            heard(world, 0, over != 0 ? "" : "cmd=appnum appnum=0\n");
            char limit[64];
            snprintf(limit, sizeof(limit), "a line of more than %d bytes", LONGEST);
            assert_true(over == 0 || strstr(err.text, limit) != NULL);
            world_destroy(world);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_version_2_is_refused),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_walk_and_spaces),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_a_rank_that_does_not_wait),
        cmocka_unit_test(test_two_that_spawn),
        cmocka_unit_test(test_other_spaces_and_an_abort_inside),
        cmocka_unit_test(test_arguments_with_line_breaks),
        cmocka_unit_test(test_requests_of_other_libraries),
        cmocka_unit_test(test_long_preputs),
        cmocka_unit_test(test_refused_requests_without_an_end),
        cmocka_unit_test(test_spawn),
        cmocka_unit_test(test_a_spawned_world),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_every_split),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_slow_endless_line),
        cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_two_nodes),
        cmocka_unit_test(test_ranks_that_do_not_follow_each_other),
        cmocka_unit_test(test_many_ranks),
        cmocka_unit_test(test_worker_env),
        cmocka_unit_test(test_a_barrier_that_one_has_left),
        cmocka_unit_test(test_one_barrier_after_the_other),
        cmocka_unit_test(test_init_without_a_version),
        cmocka_unit_test(test_floods_of_spawn),
        cmocka_unit_test(test_a_flood_of_preput),
        cmocka_unit_test(test_the_longest_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
