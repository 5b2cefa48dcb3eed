/* SPDX-License-Identifier: Apache-2.0 */
/* What each agent gets as PREPARE: the same of all nodes, and its own. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/start/start.h"
#include "loop_fixture.h"
#include "model/hosts/entry.h"
#include "wire/packing.h"

#define NODES_MAX 100
#define LARGE ((size_t)1500 << 10) /* more than a frame holds */

/* One node, and the agent's end of its link. */
struct place {
    struct node_link node;
    Hvdrun__AgentHello hello;
    char host[16], boot[16], interface[32];
    char *interfaces[1];
    int agent;
    struct frame_reader in;
};

struct fixture {
    struct settings settings;
    struct app_list apps;
    struct job_request request;
    struct strv base_env, away_env, knobs;
    struct job_kind kind;
    struct job job;
    struct plan *plan;
    struct place places[NODES_MAX];
    struct node_link *nodes[NODES_MAX];
};

static void no_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    (void)context, (void)header, (void)body;
}

static void no_end(void *context, const char *reason)
{
    (void)context, (void)reason;
}

/* The first one is on the driver's machine, the others are not. */
static void open_place(struct fixture *f, int i)
{
    static const struct link_ops ops = {.frame = no_frame, .closed = no_end};
    struct place *place = &f->places[i];
    int ends[2];
    assert_int_equal(fd_socketpair(ends), 0);
    snprintf(place->host, sizeof(place->host), "own%d", i);
    snprintf(place->boot, sizeof(place->boot), "boot%d", i);
    snprintf(place->interface, sizeof(place->interface), "eth0 10.0.0.%d/24", i + 1);
    place->interfaces[0] = place->interface;
    place->hello = (Hvdrun__AgentHello)HVDRUN__AGENT_HELLO__INIT;
    place->hello.hostname = place->host;
    place->hello.boot_id = place->boot;
    place->hello.interfaces = place->interfaces;
    place->hello.n_interfaces = 1;
    place->node = (struct node_link){.index = i,
                                     .place = i,
                                     .host = f->plan->nodes[i].name,
                                     .hello = &place->hello,
                                     .stream.same_machine = i == 0};
    place->node.link = link_create(f->job.loop, ends[0], ends[0], &ops, NULL, NULL);
    place->agent = ends[1];
    frame_reader_init(&place->in);
    f->nodes[i] = &place->node;
}

static void open_job(struct fixture *f, const char *text)
{
    struct host_list hosts = {0};
    assert_int_equal(hosts_parse(text, &hosts, NULL), 0);
    struct plan_request request = {.hosts = &hosts, .apps = &f->apps};
    f->plan = plan_create(&request, NULL);
    assert_non_null(f->plan);
    f->job.plan = f->plan;
    hosts_destroy(&hosts);
    for (int i = 0; i < f->plan->node_count; i++)
        open_place(f, i);
    f->job.nodes = f->job.places = f->nodes;
    f->job.node_count = f->plan->node_count;
}

static int setup(void **state)
{
    static struct fixture f;
    signal(SIGPIPE, SIG_IGN);
    f = (struct fixture){.job = {.loop = loop_create(NULL), .epoch = 1}};
    settings_init(&f.settings);
    f.settings.transport = SET_TRANSPORT_LOCAL;
    f.request = (struct job_request){.apps = &f.apps,
                                     .base_env = &f.base_env,
                                     .away_env = &f.away_env,
                                     .knobs = &f.knobs,
                                     .wdir = "/here"};
    strv_add(&f.base_env, "WHERE=here");
    strv_add(&f.away_env, "WHERE=away");
    f.job.request = &f.request;
    f.job.settings = &f.settings;
    f.job.kind = &f.kind;
    *state = &f;
    return f.job.loop == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < f->plan->node_count; i++) {
        link_destroy(f->places[i].node.link);
        fd_close(&f->places[i].agent);
        frame_reader_clear(&f->places[i].in);
    }
    run_turns(f->job.loop, 2);
    loop_destroy(f->job.loop);
    plan_destroy(f->plan);
    app_list_destroy(&f->apps);
    strv_destroy(&f->base_env);
    strv_destroy(&f->away_env);
    strv_destroy(&f->knobs);
    settings_destroy(&f->settings);
    return 0;
}

static void add_app(struct fixture *f, const char *program, const char *env, int np)
{
    struct app *app = app_list_add(&f->apps);
    strv_add(&app->argv, program);
    if (env != NULL)
        strv_add(&app->env, env);
    app->np = np;
}

/* NULL: nothing was sent to this node. */
static Hvdrun__Prepare *receive(struct fixture *f, int i)
{
    struct place *place = &f->places[i];
    struct frame_header header;
    const uint8_t *body;
    while (frame_reader_next(&place->in, &header, &body, NULL) == 0) {
        size_t size;
        run_turns(f->job.loop, 2);
        void *room = frame_reader_reserve(&place->in, &size);
        ssize_t got = recv(place->agent, room, size, MSG_DONTWAIT);
        if (got <= 0) {
            assert_true(frame_reader_is_clean(&place->in));
            return NULL;
        }
        frame_reader_commit(&place->in, (size_t)got);
    }
    assert_int_equal(header.type, FRAME_PREPARE);
    assert_int_equal(header.epoch, f->job.epoch);
    Hvdrun__Prepare *message = hvdrun__prepare__unpack(NULL, header.length, body);
    assert_non_null(message);
    assert_int_equal(text_runs_expand(&message->hosts, &message->n_hosts, 100), 0);
    assert_int_equal(text_runs_expand(&message->hostnames, &message->n_hostnames, 100), 0);
    assert_int_equal(text_runs_expand(&message->addresses, &message->n_addresses, 100), 0);
    assert_int_equal(number_runs_expand(&message->host_ranks, &message->n_host_ranks, 100), 0);
    return message;
}

static void release(Hvdrun__Prepare *message)
{
    hvdrun__prepare__free_unpacked(message, NULL);
}

/* What all nodes get, on this machine or on others. */
static void expect_common(const struct fixture *f, const Hvdrun__Prepare *message)
{
    size_t count = (size_t)f->plan->node_count;
    assert_int_equal(message->size, f->plan->size);
    assert_int_equal(message->n_hosts, count);
    assert_int_equal(message->n_host_ranks, count);
    assert_int_equal(message->n_hostnames, count);
    assert_int_equal(message->n_addresses, count);
    for (size_t i = 0; i < count; i++) {
        char address[40];
        snprintf(address, sizeof(address), "10.0.0.%zu", i + 1);
        assert_string_equal(message->hosts[i], f->plan->nodes[i].name);
        assert_int_equal(message->host_ranks[i], f->plan->nodes[i].local_size);
        assert_string_equal(message->hostnames[i], f->places[i].host);
        assert_string_equal(message->addresses[i], address);
    }
    assert_int_equal(message->n_apps, f->apps.count);
    assert_int_equal(message->n_app_sizes, f->apps.count);
    for (size_t i = 0; i < f->apps.count; i++) {
        const struct app *app = &f->apps.items[i];
        assert_string_equal(message->apps[i]->argv[0], app->argv.items[0]);
        assert_int_equal(message->apps[i]->n_env, app->env.count);
        if (app->env.count > 0)
            assert_string_equal(message->apps[i]->env[0], app->env.items[0]);
        assert_int_equal(message->apps[i]->np, message->app_sizes[i]);
    }
    assert_int_equal(message->n_base_env, 1);
    assert_string_equal(message->base_env[0],
                        message->remote ? f->away_env.items[0] : "WHERE=here");
    assert_int_equal(message->pty_seat, -1);
    assert_true(message->n_limits > 0);
}

static void expect_own(const struct fixture *f, const Hvdrun__Prepare *message, int i)
{
    const struct plan_node *node = &f->plan->nodes[i];
    assert_int_equal(message->node_index, i);
    assert_string_equal(message->host, node->name);
    assert_int_equal(message->local_size, node->local_size);
    assert_int_equal(message->cpu_ranks, node->local_size);
    assert_int_equal(message->remote, i > 0);
    assert_int_equal(message->wants_master, i == 0);
}

static void test_a_static_job(void **state)
{
    struct fixture *f = *state;
    add_app(f, "./a", "A=1", 3);
    add_app(f, "./b", NULL, 2);
    strv_add(&f->knobs, "HOROVOD_CYCLE_TIME=1");
    f->settings.stdin_ = 3;
    f->settings.pty = SET_RANK_ALL;
    open_job(f, "n1:2,n2:2,n3:1");
    strv_add(&f->plan->nodes[1].traits.env, "ONLY=n2");
    f->plan->nodes[1].traits.wdir = mem_strdup("below");
    struct prepare_epoch epoch = {.number = 1, .plan = f->plan, .places = f->nodes};
    assert_true(prepare_send(&f->job, &epoch));
    for (int i = 0; i < 3; i++) {
        const struct plan_node *node = &f->plan->nodes[i];
        Hvdrun__Prepare *message = receive(f, i);
        assert_non_null(message);
        expect_common(f, message);
        expect_own(f, message, i);
        assert_string_equal(message->knobs[0], "HOROVOD_CYCLE_TIME=1");
        assert_int_equal(message->n_workers, node->local_size);
        for (int w = 0; w < node->local_size; w++) {
            assert_int_equal(message->workers[w]->rank, node->ranks[w]);
            assert_int_equal(message->workers[w]->app, node->ranks[w] >= 3);
            assert_int_equal(message->workers[w]->seat, node->ranks[w]);
        }
        assert_int_equal(message->n_stdin_seats, i == 1);
        assert_true(message->stdout_terminals);
        assert_false(message->mpi_terminals);
        assert_int_equal(message->n_host_env, i == 1);
        assert_string_equal(message->wdir, i == 0 ? "" : i == 1 ? "/here/below" : "/here");
        release(message);
        assert_null(receive(f, i));
    }
    assert_int_equal(f->plan->size, 5);
}

/* Rank 2 is new on n2, and rank 4 on n3; the others go on. */
static void test_workers_join(void **state)
{
    struct fixture *f = *state;
    static const struct elastic_member members[] = {
        {.seat = 5, .host = 0, .rank = 0},
        {.seat = 6, .host = 0, .rank = 1},
        {.seat = 9, .host = 1, .slot = 1, .rank = 2, .is_new = true},
        {.seat = 7, .host = 1, .slot = 0, .rank = 3},
        {.seat = 10, .host = 2, .slot = 4, .rank = 4, .is_new = true},
    };
    add_app(f, "./a", "A=1", 0);
    open_job(f, "n1:2,n2:2,n3:1");
    f->job.epoch = 7;
    f->kind.many_epochs = true;
    f->settings.max_restarts = 3;
    struct prepare_epoch epoch = {.number = 7,
                                  .plan = f->plan,
                                  .places = f->nodes,
                                  .members = members,
                                  .restart_count = 2,
                                  .beside_others = true};
    assert_true(prepare_send(&f->job, &epoch));
    assert_null(receive(f, 0));
    for (int i = 1; i < 3; i++) {
        const struct elastic_member *member = &members[2 * i];
        Hvdrun__Prepare *message = receive(f, i);
        assert_non_null(message);
        expect_common(f, message);
        expect_own(f, message, i);
        assert_true(message->elastic);
        assert_false(message->stdout_terminals);
        assert_true(message->mpi_terminals);
        assert_int_equal(message->universe_size, 0); /* as many as ranks */
        assert_int_equal(message->restart_count, 2);
        assert_int_equal(message->max_restarts, 3);
        assert_string_equal(message->apps[0]->mpi, "none");
        assert_int_equal(message->n_workers, 1);
        assert_int_equal(message->workers[0]->rank, member->rank);
        assert_int_equal(message->workers[0]->seat, member->seat);
        assert_int_equal(message->workers[0]->slot, member->slot);
        assert_int_equal(message->n_stdin_seats, 0);
        release(message);
    }
}

/* Ranks that have ended need no CPU. */
static void test_a_world_that_a_rank_spawns(void **state)
{
    struct fixture *f = *state;
    static const struct elastic_member members[] = {{.seat = 3, .slot = 1, .is_new = true}};
    struct app_list apps = {0};
    struct host_list hosts = {0};
    AUTO_STRV struct strv preput = STRV_INIT;
    struct world world = {
        .apps = &apps, .parent_epoch = 1, .parent_rank = 2, .first_seat = 3, .preput = &preput};
    strv_add(&preput, "PARENT_ROOT_PORT_NAME");
    strv_add(&preput, "port = 1");
    add_app(f, "./a", "A=1", 0);
    open_job(f, "n1:2,n2:1");
    rank_table_init(&f->job.ranks, 3);
    f->job.ranks.records[1].state = RANK_EXITED;
    f->job.ranks.records[2].state = RANK_RUNNING;
    strv_add(&app_list_add(&apps)->argv, "./child");
    assert_int_equal(hosts_parse("n1:1,n2:1", &hosts, NULL), 0);
    struct plan_request request = {.hosts = &hosts, .apps = &apps, .np = 1, .idle_hosts = true};
    struct plan *plan = plan_create(&request, NULL);
    assert_non_null(plan);
    struct prepare_epoch epoch = {.number = f->job.epoch,
                                  .plan = plan,
                                  .places = f->nodes,
                                  .members = members,
                                  .world = &world,
                                  .beside_others = true};
    assert_true(prepare_send(&f->job, &epoch));
    for (int i = 0; i < 2; i++) {
        Hvdrun__Prepare *message = receive(f, i);
        assert_non_null(message);
        assert_int_equal(message->size, 1);
        assert_int_equal(message->local_size, i == 0);
        assert_int_equal(message->cpu_ranks, i == 0 ? 2 : 1);
        assert_int_equal(message->universe_size, 3);
        assert_int_equal(message->first_seat, 3);
        assert_int_equal(message->n_preput, 2);
        assert_string_equal(message->preput[1], "port = 1");
        release(message);
    }
    plan_destroy(plan);
    hosts_destroy(&hosts);
    app_list_destroy(&apps);
    rank_table_destroy(&f->job.ranks);
}

static size_t peak_kib(void)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    assert_non_null(file);
    while (kib == 0 && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtoul(line + 6, NULL, 10);
    }
    fclose(file);
    assert_true(kib > 0);
    return kib;
}

/* 1.5 MiB for each of 100 nodes are in memory once. */
static void test_what_all_get_is_there_once(void **state)
{
    struct fixture *f = *state;
    char *large AUTO_FREE = mem_alloc(LARGE + 1);
    memset(large, 'x', LARGE);
    memcpy(large, "LARGE=", 6);
    large[LARGE] = '\0';
    strv_destroy(&f->away_env);
    strv_add(&f->away_env, large);
    AUTO_BUF struct buf hosts = BUF_INIT(4096);
    for (int i = 0; i < NODES_MAX; i++)
        buf_printf(&hosts, "%sn%d:1", i > 0 ? "," : "", i);
    add_app(f, "./a", "A=1", 0);
    open_job(f, buf_text(&hosts));
    struct prepare_epoch epoch = {.number = 1, .plan = f->plan, .places = f->nodes};
    size_t before = peak_kib();
    assert_true(prepare_send(&f->job, &epoch));
    assert_true(link_queued(f->nodes[1]->link) > LARGE);
    assert_true(peak_kib() - before < (size_t)16 << 10);
    for (int i = 0; i < NODES_MAX; i += 33) {
        Hvdrun__Prepare *message = receive(f, i);
        assert_non_null(message);
        expect_common(f, message);
        expect_own(f, message, i);
        release(message);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_static_job),
        TEST(test_workers_join),
        TEST(test_a_world_that_a_rank_spawns),
        TEST(test_what_all_get_is_there_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
