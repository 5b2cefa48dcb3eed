/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole room with real clients: the stand-in Horovod workers as processes, a server and a proxy
 * per node, the store, and between them queues in the place of frames, which may be slow.
 *
 * By hand, for a look at speed: test_mesh RANKS NODES DELAY_MS [worker options].
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "rendezvous/proxy.h"
#include "rendezvous/server.h"
#include "rendezvous/store.h"
#include "unit.h"

#pragma push_macro("main") /* the build's name for the one below */
#undef main
#define main horovod_worker_main
#include "../workers/horovod_worker.c"
#undef main
#pragma pop_macro("main")

enum { NODES_MAX = 4, RANKS_MAX = 1024, TURN_MS = 1, PATIENCE_MS = 50000 };

/* One frame on its way, either direction. */
struct frame {
    struct frame *next;
    int64_t due_ms;
    int node;
    bool to_driver, cancel;
    uint64_t id;
    int status; /* of a reply */
    struct rendezvous_request request;
    void *body;
    size_t length;
};

struct mesh;

struct node {
    struct mesh *mesh;
    int index;
    struct rendezvous_server *server;
    struct rendezvous_proxy *proxy;
};

struct mesh {
    struct loop *loop;
    struct loop_timer *turn;
    struct rendezvous_store *store;
    struct node nodes[NODES_MAX];
    int node_count, size;
    int64_t delay_ms; /* of a frame, one way */
    struct frame *first, **last;
    long frames, problems;
    bool by_hand; /* let the workers speak */
    pid_t pids[RANKS_MAX];
    int statuses[RANKS_MAX]; /* from waitpid; -1: still running */
};

static void deliver(struct mesh *mesh, struct frame *frame)
{
    struct rendezvous_source source = {(uint32_t)frame->node, frame->id};
    if (!frame->to_driver)
        rendezvous_proxy_reply(mesh->nodes[frame->node].proxy, frame->id, frame->status,
                               frame->body, frame->length);
    else if (frame->cancel)
        rendezvous_store_drop(mesh->store, source);
    else
        rendezvous_store_request(mesh->store, unit_limit_ms(0), 1, source, &frame->request);
    free((void *)(uintptr_t)frame->request.scope);
    free((void *)(uintptr_t)frame->request.key);
    free(frame->body);
    free(frame);
}

static void post(struct mesh *mesh, struct frame frame, const void *body, size_t length)
{
    mesh->frames++;
    frame.body = length > 0 ? mem_dup(body, length) : NULL;
    frame.length = frame.request.length = length;
    frame.request.body = frame.body;
    frame.due_ms = unit_limit_ms(mesh->delay_ms);
    struct frame *copy = mem_dup(&frame, sizeof(frame));
    if (mesh->delay_ms == 0) {
        deliver(mesh, copy);
        return;
    }
    *mesh->last = copy;
    mesh->last = &copy->next;
}

static void on_request(void *context, uint64_t token, const struct rendezvous_request *request)
{
    rendezvous_proxy_request(((struct node *)context)->proxy, token, request);
}

static void on_dropped(void *context, uint64_t token)
{
    rendezvous_proxy_dropped(((struct node *)context)->proxy, token);
}

static void on_ask(void *context, uint64_t id, const struct rendezvous_request *request)
{
    struct node *node = context;
    struct frame frame = {.node = node->index, .to_driver = true, .id = id};
    frame.request.method = request->method;
    frame.request.scope = mem_strdup(request->scope);
    frame.request.key = mem_strdup(request->key);
    post(node->mesh, frame, request->body, request->length);
}

static void on_cancel(void *context, uint64_t id)
{
    struct node *node = context;
    post(node->mesh,
         (struct frame){.node = node->index, .to_driver = true, .cancel = true, .id = id}, NULL, 0);
}

static void on_answer(void *context, uint64_t token, int status, const void *body, size_t length)
{
    rendezvous_server_reply(((struct node *)context)->server, token, status, body, length);
}

static void on_reply(void *context, struct rendezvous_source source, int status, const void *body,
                     size_t length)
{
    post(context, (struct frame){.node = (int)source.node, .id = source.id, .status = status}, body,
         length);
}

static void on_problem(void *context, const char *text)
{
    (void)text;
    ((struct mesh *)context)->problems++;
}

static const struct rendezvous_server_ops server_ops = {.request = on_request,
                                                        .dropped = on_dropped};
static const struct rendezvous_proxy_ops proxy_ops = {
    .ask = on_ask, .cancel = on_cancel, .answer = on_answer};
static const struct rendezvous_store_ops store_ops = {.reply = on_reply, .problem = on_problem};

/* The driver's and the agents' part of a turn: frames that are due, held GETs that are over. */
static void on_turn(void *context)
{
    struct mesh *mesh = context;
    int64_t now = unit_limit_ms(0);
    while (mesh->first != NULL && mesh->first->due_ms <= now) {
        struct frame *frame = mesh->first;
        mesh->first = frame->next;
        if (mesh->first == NULL)
            mesh->last = &mesh->first;
        deliver(mesh, frame);
    }
    rendezvous_store_expire(mesh->store, now);
    loop_stop(mesh->loop);
}

/* Ranks go round robin over the nodes' slots in order: node i has size/nodes ranks, the first
 * size%nodes nodes one more, so that local sizes and cross sizes differ. */
static int local_size(const struct mesh *mesh, int node)
{
    return mesh->size / mesh->node_count + (node < mesh->size % mesh->node_count ? 1 : 0);
}

static int cross_size(const struct mesh *mesh, int local_rank)
{
    int count = 0;
    for (int i = 0; i < mesh->node_count; i++)
        count += local_size(mesh, i) > local_rank ? 1 : 0;
    return count;
}

static void begin(struct mesh *mesh)
{
    struct plan_rank *ranks = mem_array((size_t)mesh->size, sizeof(*ranks));
    struct plan_node nodes[NODES_MAX] = {{0}};
    static const char *const names[NODES_MAX] = {"node0", "node1", "node2", "node3"};
    int rank = 0;
    for (int i = 0; i < mesh->node_count; i++) {
        nodes[i].name = (char *)(uintptr_t)names[i];
        nodes[i].local_size = local_size(mesh, i);
        for (int j = 0; j < nodes[i].local_size; j++, rank++)
            ranks[rank] = (struct plan_rank){.rank = rank, .node = i, .local_rank = j};
    }
    struct plan plan = {
        .size = mesh->size, .node_count = mesh->node_count, .ranks = ranks, .nodes = nodes};
    rendezvous_store_begin(mesh->store, 1, &plan);
    free(ranks);
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* In the child: only the environment and the port are the parent's. */
__attribute__((noreturn)) static void be_worker(struct mesh *mesh, int node, int local_rank,
                                                char **argv)
{
    int port = rendezvous_server_port(mesh->nodes[node].server), argc = 0, rank = local_rank;
    char name[16];
    for (int i = 0; i < node; i++)
        rank += local_size(mesh, i);
    close_range(3, ~0U, 0);
    const struct rlimit none = {0};
    setrlimit(RLIMIT_CORE, &none); /* some are meant to abort */
    if (!mesh->by_hand)
        dup2(open("/dev/null", O_WRONLY), 1);
    snprintf(name, sizeof(name), "node%d", node);
    setenv("HOROVOD_HOSTNAME", name, 1);
    setenv("HOROVOD_CONTROLLER", "gloo", 1);
    setenv("HOROVOD_GLOO_IFACE", "lo", 1);
    setenv("HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1", 1);
    set_number("HOROVOD_GLOO_RENDEZVOUS_PORT", port);
    set_number("HOROVOD_RANK", rank);
    set_number("HOROVOD_SIZE", mesh->size);
    set_number("HOROVOD_LOCAL_RANK", local_rank);
    set_number("HOROVOD_LOCAL_SIZE", local_size(mesh, node));
    set_number("HOROVOD_CROSS_RANK", node);
    set_number("HOROVOD_CROSS_SIZE", cross_size(mesh, local_rank));
    unsetenv("HOROVOD_ELASTIC");
    while (argv[argc] != NULL)
        argc++;
    _exit(horovod_worker_main(argc, argv));
}

static void start_workers(struct mesh *mesh, char **argv)
{
    int rank = 0;
    for (int i = 0; i < mesh->node_count; i++) {
        for (int j = 0; j < local_size(mesh, i); j++, rank++) {
            mesh->statuses[rank] = -1;
            mesh->pids[rank] = fork();
            assert_true(mesh->pids[rank] >= 0);
            if (mesh->pids[rank] == 0)
                be_worker(mesh, i, j, argv);
        }
    }
}

/* Until all workers are reaped. */
static void run(struct mesh *mesh)
{
    int64_t end = unit_limit_ms(PATIENCE_MS);
    int left = mesh->size;
    while (left > 0) {
        loop_timer_set(mesh->turn, TURN_MS);
        loop_run(mesh->loop);
        for (int i = 0; i < mesh->size; i++) {
            if (mesh->pids[i] > 0 && unit_is_over(end))
                kill(mesh->pids[i], SIGKILL);
            if (mesh->pids[i] > 0 &&
                waitpid(mesh->pids[i], &mesh->statuses[i], WNOHANG) == mesh->pids[i]) {
                mesh->pids[i] = 0;
                left--;
            }
        }
    }
}

static struct mesh *create(int size, int node_count, int64_t delay_ms)
{
    struct mesh *mesh = mem_alloc(sizeof(*mesh));
    mesh->size = size;
    mesh->node_count = node_count;
    mesh->delay_ms = delay_ms;
    mesh->last = &mesh->first;
    mesh->loop = loop_create(NULL);
    mesh->turn = loop_timer_create(mesh->loop, on_turn, mesh);
    mesh->store = rendezvous_store_create(&store_ops, mesh, 0);
    for (int i = 0; i < node_count; i++) {
        struct node *node = &mesh->nodes[i];
        node->mesh = mesh;
        node->index = i;
        node->proxy = rendezvous_proxy_create(&proxy_ops, node, RENDEZVOUS_CACHE_MAX);
        node->server = rendezvous_server_create(mesh->loop, &server_ops, node, NULL);
        assert_non_null(node->server);
    }
    begin(mesh);
    return mesh;
}

static void destroy(struct mesh *mesh)
{
    while (mesh->first != NULL) {
        struct frame *frame = mesh->first;
        mesh->first = frame->next;
        free((void *)(uintptr_t)frame->request.scope);
        free((void *)(uintptr_t)frame->request.key);
        free(frame->body);
        free(frame);
    }
    for (int i = 0; i < mesh->node_count; i++) {
        rendezvous_server_destroy(mesh->nodes[i].server);
        rendezvous_proxy_destroy(mesh->nodes[i].proxy);
    }
    rendezvous_store_destroy(mesh->store);
    loop_timer_destroy(mesh->turn);
    loop_destroy(mesh->loop);
    free(mesh);
}

static void assert_all_exit(const struct mesh *mesh, int status)
{
    for (int i = 0; i < mesh->size; i++) {
        if (!WIFEXITED(mesh->statuses[i]) || WEXITSTATUS(mesh->statuses[i]) != status)
            fail_msg("rank %d of %d: wait status %#x", i, mesh->size, (unsigned)mesh->statuses[i]);
    }
}

static void mesh_works(int size, int nodes, int64_t delay_ms)
{
    char *argv[] = {(char *)"horovod_worker", (char *)"--reinit", (char *)"3",
                    (char *)"--steps",        (char *)"2",        NULL};
    struct mesh *mesh = create(size, nodes, delay_ms);
    uint64_t before = rendezvous_store_memory(mesh->store);
    start_workers(mesh, argv);
    run(mesh);
    assert_all_exit(mesh, 0);
    assert_int_equal(mesh->problems, 0);
    /* the plan's scopes are empty again; the process sets left their rank_ hints */
    assert_true(rendezvous_store_memory(mesh->store) < before + 3000 + 1500 * (uint64_t)size);
    for (int i = 0; i < nodes; i++) {
        const struct rendezvous_server_counts *counts =
            rendezvous_server_counts(mesh->nodes[i].server);
        assert_int_equal(counts->malformed + counts->refused + counts->late, 0);
        assert_int_equal(counts->answered, counts->accepted);
    }
    destroy(mesh);
}

static void test_one_node(void **state)
{
    (void)state;
    for (int size = 1; size <= 8; size += size < 4 ? 1 : 4)
        mesh_works(size, 1, 0);
}

static void test_nodes_with_slow_links(void **state)
{
    (void)state;
    mesh_works(3, 2, 3);
    mesh_works(7, 3, 10);
}

/* A rank that dies before it stored its address: the others time out and abort. */
static void test_missing_peer(void **state)
{
    (void)state;
    char *argv[] = {(char *)"horovod_worker", (char *)"--die-before-put", (char *)"1", NULL};
    setenv("HOROVOD_GLOO_TIMEOUT_SECONDS", "1", 1);
    struct mesh *mesh = create(3, 1, 0);
    start_workers(mesh, argv);
    run(mesh);
    unsetenv("HOROVOD_GLOO_TIMEOUT_SECONDS");
    for (int i = 0; i < 3; i++) {
        assert_true(WIFSIGNALED(mesh->statuses[i]));
        assert_int_equal(WTERMSIG(mesh->statuses[i]), i == 1 ? SIGKILL : SIGABRT);
    }
    assert_int_equal(rendezvous_store_next_deadline(mesh->store), -1); /* nobody is left waiting */
    destroy(mesh);
}

static void test_rank_exits_after_init(void **state)
{
    (void)state;
    char *argv[] = {(char *)"horovod_worker", (char *)"--exit-rank", (char *)"2",
                    (char *)"--exit-code",    (char *)"7",           NULL};
    struct mesh *mesh = create(3, 1, 0);
    start_workers(mesh, argv);
    run(mesh);
    for (int i = 0; i < 3; i++)
        assert_int_equal(WEXITSTATUS(mesh->statuses[i]), i == 2 ? 7 : 1);
    destroy(mesh);
}

/* unit_rendezvous RANKS NODES DELAY_MS [WORKER ARGUMENT]...: one mesh, and what it took. */
int unit_called_otherwise(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    struct mesh *mesh =
        create((int)to_number(argv[1]), (int)to_number(argv[2]), to_number(argv[3]));
    struct rusage usage;
    int64_t start = unit_limit_ms(0);
    mesh->by_hand = true;
    start_workers(mesh, argv + 3);
    run(mesh);
    getrusage(RUSAGE_SELF, &usage);
    int64_t took = unit_limit_ms(0) - start;
    uint64_t requests = 0;
    for (int i = 0; i < mesh->node_count; i++)
        requests += rendezvous_server_counts(mesh->nodes[i].server)->answered;
    assert_all_exit(mesh, 0);
    dprintf(2, "%d ranks: %lld ms, %llu requests (%llu/s), %ld frames, %ld ms of CPU here\n",
            mesh->size, (long long)took, (unsigned long long)requests,
            (unsigned long long)requests * 1000 / (unsigned long long)(took > 0 ? took : 1),
            mesh->frames,
            (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
    destroy(mesh);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_node),
        cmocka_unit_test(test_nodes_with_slow_links),
        cmocka_unit_test(test_missing_peer),
        cmocka_unit_test(test_rank_exits_after_init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
