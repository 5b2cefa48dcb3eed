/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's part of the store for torch.distributed. The node that the driver has chosen serves
 * it: for each set of workers that starts anew, on a port of its own. With "auto", each node looks
 * whether its PyTorch can use it.
 *
 * It also says which clients of the store wait, and which workers of this node have a connection to
 * it. A worker is known by the socket that one of its processes holds, so nothing depends on what
 * clients say.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_state.h"
#include "agent/crew_apps.h"
#include "agent/crew_config.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/plain.h"
#include "features/torch_store/torch_look.h"
#include "features/torch_store/torch_server.h"
#include "model/settings/words.h"
#include "node/descendants.h"
#include "node/ports.h"

#define KEY_SHOWN 200
#define TABLE_MAX ((size_t)256 << 20)
#define ASKED_THREADS 1000 /* more cost more than a walk through /proc */

struct torch_desk {
    struct torch_server *server; /* NULL: another node serves it */
    int held;                    /* keeps others off the port */
    int port;
    char *doubt, *problem; /* NULL: none */
};

static void forget(struct torch_desk *desk)
{
    torch_server_destroy(desk->server);
    desk->server = NULL;
    desk->port = 0;
    fd_close(&desk->held);
    mem_free_at(&desk->doubt);
    mem_free_at(&desk->problem);
}

static int serve(struct torch_desk *desk, struct agent *agent, int wanted, struct error *err)
{
    desk->held = port_hold(port_range_read(), wanted, &desk->port, err);
    if (desk->held < 0)
        return -1;
    desk->server =
        torch_server_create(agent->loop, desk->port, TORCH_CLIENTS_MAX, &agent->post.log, err);
    return desk->server == NULL ? -1 : 0;
}

static int look(const Hvdrun__Prepare *prepare, const struct log *log, struct error *err)
{
    struct crew_apps apps;
    int result = crew_apps_fill(&apps, prepare, false, log, err);
    for (size_t i = 0; i < prepare->n_apps && result == 0; i++) {
        struct python_place place = {.path = apps.items[i].path,
                                     .wdir = apps.items[i].wdir,
                                     .search = crew_apps_getenv(&apps, i, "PATH"),
                                     .home = crew_apps_getenv(&apps, i, "HOME"),
                                     .python_path = crew_apps_getenv(&apps, i, "PYTHONPATH"),
                                     .user_base = crew_apps_getenv(&apps, i, "PYTHONUSERBASE"),
                                     .no_user_site =
                                         crew_apps_getenv(&apps, i, "PYTHONNOUSERSITE")};
        result = torch_look(&place, err);
    }
    crew_apps_destroy(&apps);
    return result;
}

static struct torch_desk *desk_of(struct agent *agent)
{
    struct torch_desk *desk = agent_own(agent, torch_desk);
    if (desk == NULL) {
        desk = MEM_NEW((struct torch_desk){.held = -1});
        agent->own[AGENT_PART_torch_desk] = desk;
    }
    return desk;
}

/* Workers that join others have the store of these. */
static void crew(struct agent *agent, struct crew_config *config, const Hvdrun__Prepare *prepare,
                 bool joins)
{
    struct error err = ERROR_INIT;
    (void)joins;
    if (prepare->torch_store == SET_TORCH_STORE_RANK0)
        return;
    bool may_fail = prepare->torch_store == SET_TORCH_STORE_AUTO;
    struct torch_desk *desk = desk_of(agent);
    forget(desk);
    int result = may_fail ? look(prepare, &agent->post.log, &err) : 0;
    if (result == 0 && prepare->torch_store_node == prepare->node_index)
        result = serve(desk, agent, (int)prepare->torch_store_port, &err);
    if (result < 0)
        *(may_fail ? &desk->doubt : &desk->problem) = mem_strdup(err.text);
    config->ready.torch_store_port = desk->server == NULL ? 0 : (uint32_t)desk->port;
    if (desk->doubt != NULL)
        config->ready.torch_store_doubt = desk->doubt;
    config->problem = desk->problem;
}

/* Who waits */

struct waits_answer {
    Hvdrun__TorchWaits *message;
    struct torch_sockets sockets;
    struct descendants_table *processes;
    uint32_t seat; /* of the present worker */
};

static void add_wait(void *context, const struct torch_waiting *waiting)
{
    const struct torch_peer *peer = torch_server_peer(waiting);
    Hvdrun__TorchWaits *message = context;
    Hvdrun__TorchWait *wait = mem_alloc(sizeof(*wait));
    hvdrun__torch_wait__init(wait);
    wait->address = mem_strdup(peer->address);
    wait->port = (uint32_t)peer->port;
    wait->key = mem_strndup(waiting->key,
                            waiting->key_length < KEY_SHOWN ? waiting->key_length : KEY_SHOWN);
    plain_line(wait->key, '?');
    wait->keys = (uint32_t)waiting->keys;
    wait->waited_ms = (uint64_t)waiting->waited_ms;
    MEM_ADD(message->waits, message->n_waits) = wait;
}

static void add_connection(struct waits_answer *answer, const struct torch_socket *socket)
{
    Hvdrun__TorchWaits *message = answer->message;
    size_t count = message->n_connections;
    Hvdrun__TorchConnection *connection = mem_alloc(sizeof(*connection));
    hvdrun__torch_connection__init(connection);
    connection->seat = answer->seat;
    connection->address = mem_strdup(socket->local.address);
    connection->port = (uint32_t)socket->local.port;
    message->connections =
        mem_resize_array(message->connections, count + 1, sizeof(*message->connections));
    message->connections[message->n_connections++] = connection;
}

/* Its connections are in the tables of this process's network. */
static bool shares_network(pid_t pid)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/ns/net", (int)pid), own[64], its[64];
    ssize_t one = readlink("/proc/self/ns/net", own, sizeof(own));
    ssize_t other = readlink(path, its, sizeof(its));
    return one > 0 && one == other && memcmp(own, its, (size_t)one) == 0;
}

/* false: it cannot be seen, and may be connected. One that has ended is seen. */
static bool look_at_process(struct waits_answer *answer, pid_t pid)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/fd", (int)pid);
    DIR *folder = shares_network(pid) ? opendir(path) : NULL;
    bool seen = folder != NULL || (kill(pid, 0) < 0 && errno == ESRCH);
    struct dirent *entry = folder == NULL ? NULL : readdir(folder);
    for (; entry != NULL; entry = readdir(folder)) {
        static const char begin[] = "socket:[";
        char target[64];
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strncmp(target, begin, sizeof(begin) - 1) != 0)
            continue;
        const struct torch_socket *socket =
            torch_sockets_find(&answer->sockets, strtoull(target + sizeof(begin) - 1, NULL, 10));
        if (socket != NULL)
            add_connection(answer, socket);
    }
    if (folder != NULL)
        closedir(folder);
    return seen;
}

static void look_at_worker(void *context, uint32_t seat, pid_t pid)
{
    struct waits_answer *answer = context;
    pid_t *below AUTO_FREE = NULL;
    size_t count = descendants_in(answer->processes, pid, &below);
    answer->seat = seat;
    bool seen = look_at_process(answer, pid);
    for (size_t i = 0; i < count; i++)
        seen = look_at_process(answer, below[i]) && seen;
    if (seen)
        return;
    Hvdrun__TorchWaits *message = answer->message;
    MEM_ADD(message->hidden, message->n_hidden) = seat;
}

static void read_sockets(struct torch_sockets *sockets, const char *path,
                         const struct torch_peer *store)
{
    struct buf text AUTO_BUF = BUF_INIT(TABLE_MAX);
    if (fd_read_file(path, &text, NULL) == 0)
        torch_sockets_add(sockets, buf_text(&text), store);
}

static void look_at_workers(struct waits_answer *answer, const struct crews *crews,
                            const Hvdrun__TorchWaitsRequest *request)
{
    struct torch_peer store = {.port = (int)request->port};
    snprintf(store.address, sizeof(store.address), "%s", request->address);
    read_sockets(&answer->sockets, "/proc/net/tcp", &store);
    read_sockets(&answer->sockets, "/proc/net/tcp6", &store);
    answer->message->looked = true;
    answer->processes = descendants_table_read(ASKED_THREADS);
    crews_walk_live(crews, look_at_worker, answer);
    descendants_table_destroy(answer->processes);
    free(answer->sockets.items);
}

static void answer(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    const struct torch_desk *desk = agent_own(agent, torch_desk);
    const Hvdrun__TorchWaitsRequest *wanted = (const Hvdrun__TorchWaitsRequest *)request;
    struct waits_answer answer = {.message = mem_alloc(sizeof(*answer.message))};
    hvdrun__torch_waits__init(answer.message);
    if (desk != NULL && desk->server != NULL) {
        answer.message->clients = (uint32_t)torch_server_clients(desk->server);
        torch_server_each_waiting(desk->server, add_wait, answer.message);
    }
    if (wanted->address[0] != '\0')
        look_at_workers(&answer, agent->crews, wanted);
    asked_answer(asked, &answer.message->base);
    hvdrun__torch_waits__free_unpacked(answer.message, NULL);
}

static void close_part(struct agent *agent)
{
    forget(agent_own(agent, torch_desk));
    free(agent_own(agent, torch_desk));
}

static const struct ask_rule topics[] = {{&topic_torch_waits, answer}, {.topic = NULL}};
const struct agent_part torch_desk_agent_part = {
    .name = "torch_desk", .topics = topics, .crew = crew, .close = close_part};
