/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which clients of the store wait, and which workers of this node have a connection to it. A worker
 * is known by the socket that one of its processes holds, so nothing depends on what clients say.
 */
#include "features/torch_store/torch_waits_agent.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/plain.h"
#include "node/descendants.h"

#define KEY_SHOWN 200
#define TABLE_MAX ((size_t)256 << 20)
#define ASKED_THREADS 1000 /* more cost more than a walk through /proc */

struct answer {
    Hvdrun__TorchWaits message;
    struct torch_sockets sockets;
    struct descendants_table *processes;
    uint32_t seat; /* of the present worker */
};

static void add_wait(void *context, const struct torch_peer *peer,
                     const struct torch_waiting *waiting, int64_t now_ms)
{
    Hvdrun__TorchWaits *message = context;
    Hvdrun__TorchWait *wait = mem_alloc(sizeof(*wait));
    hvdrun__torch_wait__init(wait);
    wait->address = mem_strdup(peer->address);
    wait->port = (uint32_t)peer->port;
    wait->key = mem_strndup(waiting->key,
                            waiting->key_length < KEY_SHOWN ? waiting->key_length : KEY_SHOWN);
    plain_line(wait->key, '?');
    wait->keys = (uint32_t)waiting->keys;
    wait->waited_ms = (uint64_t)(now_ms - waiting->since_ms);
    message->waits =
        mem_resize_array(message->waits, message->n_waits + 1, sizeof(*message->waits));
    message->waits[message->n_waits++] = wait;
}

static void add_connection(struct answer *answer, const struct torch_socket *socket)
{
    Hvdrun__TorchWaits *message = &answer->message;
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
static bool look_at_process(struct answer *answer, pid_t pid)
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
    struct answer *answer = context;
    pid_t *below AUTO_FREE = NULL;
    size_t count = descendants_in(answer->processes, pid, &below);
    answer->seat = seat;
    bool seen = look_at_process(answer, pid);
    for (size_t i = 0; i < count; i++)
        seen = look_at_process(answer, below[i]) && seen;
    if (seen)
        return;
    Hvdrun__TorchWaits *message = &answer->message;
    message->hidden =
        mem_resize_array(message->hidden, message->n_hidden + 1, sizeof(*message->hidden));
    message->hidden[message->n_hidden++] = seat;
}

static void read_sockets(struct torch_sockets *sockets, const char *path,
                         const struct torch_peer *store)
{
    struct buf text AUTO_BUF = BUF_INIT(TABLE_MAX);
    if (fd_read_file(path, &text, NULL) == 0)
        torch_sockets_add(sockets, buf_text(&text), store);
}

static void look(struct answer *answer, const struct crews *crews,
                 const Hvdrun__TorchWaitsRequest *request)
{
    struct torch_peer store = {.port = (int)request->port};
    snprintf(store.address, sizeof(store.address), "%s", request->address);
    read_sockets(&answer->sockets, "/proc/net/tcp", &store);
    read_sockets(&answer->sockets, "/proc/net/tcp6", &store);
    answer->message.looked = true;
    answer->processes = descendants_table_read(ASKED_THREADS);
    crews_walk_live(crews, look_at_worker, answer);
    descendants_table_destroy(answer->processes);
    torch_sockets_destroy(&answer->sockets);
}

static void clear(Hvdrun__TorchWaits *message)
{
    for (size_t i = 0; i < message->n_waits; i++) {
        free(message->waits[i]->address);
        free(message->waits[i]->key);
        free(message->waits[i]);
    }
    for (size_t i = 0; i < message->n_connections; i++) {
        free(message->connections[i]->address);
        free(message->connections[i]);
    }
    free(message->hidden);
    free(message->waits);
    free(message->connections);
}

void torch_waits_answer(const struct crews *crews, const struct torch_server *server,
                        const struct asked *asked, const Hvdrun__TorchWaitsRequest *request)
{
    struct answer answer = {.message = HVDRUN__TORCH_WAITS__INIT};
    if (server != NULL) {
        answer.message.clients = (uint32_t)torch_server_clients(server);
        torch_server_each_waiting(server, add_wait, &answer.message);
    }
    if (request->address[0] != '\0')
        look(&answer, crews, request);
    asked_answer(asked, &answer.message.base);
    clear(&answer.message);
}
