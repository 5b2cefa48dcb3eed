/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"

enum { STEP_MS = 5 };

struct mesh *mesh_new(int rank, int size)
{
    struct mesh *mesh = mem_alloc(sizeof *mesh);
    mesh->rank = rank;
    mesh->size = size;
    mesh->fds = mem_array((size_t)size, sizeof *mesh->fds);
    for (int i = 0; i < size; i++)
        mesh->fds[i] = -1;
    atomic_init(&mesh->stop, false);
    return mesh;
}

void mesh_free(struct mesh *mesh)
{
    for (int i = 0; i < mesh->size; i++)
        if (mesh->fds[i] >= 0)
            close(mesh->fds[i]);
    free(mesh->fds);
    free(mesh);
}

static socklen_t address_of(const char *id, int rank, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s-%d", id, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int new_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        mem_exhausted();
    return fd;
}

static void connect_to(struct mesh *mesh, const char *id, int rank)
{
    struct sockaddr_un address;
    socklen_t length = address_of(id, rank, &address);
    while (!atomic_load(&mesh->stop)) {
        int fd = new_socket();
        if (connect(fd, (struct sockaddr *)&address, length) == 0 &&
            send(fd, &mesh->rank, sizeof mesh->rank, MSG_NOSIGNAL) == sizeof mesh->rank) {
            mesh->fds[rank] = fd;
            return;
        }
        close(fd);
        poll(NULL, 0, STEP_MS);
    }
}

static void accept_one(struct mesh *mesh, int listener)
{
    int rank = -1;
    while (!atomic_load(&mesh->stop)) {
        struct pollfd ready = {listener, POLLIN, 0};
        poll(&ready, 1, STEP_MS);
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        ready.fd = fd;
        poll(&ready, 1, 1000 * STEP_MS);
        if (recv(fd, &rank, sizeof rank, 0) == sizeof rank && rank > mesh->rank &&
            rank < mesh->size) {
            mesh->fds[rank] = fd;
            return;
        }
        close(fd);
    }
}

bool mesh_connect(struct mesh *mesh, const char *id)
{
    struct sockaddr_un address;
    socklen_t length = address_of(id, mesh->rank, &address);
    int listener = new_socket();
    if (bind(listener, (struct sockaddr *)&address, length) != 0 ||
        listen(listener, mesh->size) != 0)
        mem_exhausted();
    for (int rank = 0; rank < mesh->rank; rank++)
        connect_to(mesh, id, rank);
    for (int rank = mesh->rank + 1; rank < mesh->size; rank++)
        accept_one(mesh, listener);
    close(listener);
    return !atomic_load(&mesh->stop);
}

static void send_some(int fd, struct mesh_part *part)
{
    ssize_t sent = send(fd, part->out, part->out_bytes, MSG_NOSIGNAL);
    if (sent > 0) {
        part->out += sent;
        part->out_bytes -= (size_t)sent;
    }
}

static void receive_some(int fd, struct mesh_part *part)
{
    ssize_t got = recv(fd, part->in, part->in_bytes, 0);
    if (got > 0) {
        part->in += got;
        part->in_bytes -= (size_t)got;
    }
}

/* A rank that has gone is never ready for anything that counts, so the caller waits for `stop`. */
bool mesh_exchange(struct mesh *mesh, struct mesh_part *parts)
{
    struct pollfd *polls AUTO_FREE = mem_array((size_t)mesh->size, sizeof *polls);
    bool pending = mesh->size > 1;
    while (pending && !atomic_load(&mesh->stop)) {
        pending = false;
        for (int i = 0; i < mesh->size; i++) {
            struct mesh_part *part = &parts[i];
            short events =
                (short)((part->out_bytes > 0 ? POLLOUT : 0) | (part->in_bytes > 0 ? POLLIN : 0));
            polls[i] =
                (struct pollfd){i != mesh->rank && events != 0 ? mesh->fds[i] : -1, events, 0};
            pending = pending || polls[i].fd >= 0;
        }
        if (pending)
            poll(polls, (nfds_t)mesh->size, STEP_MS);
        for (int i = 0; i < mesh->size; i++) {
            if ((polls[i].revents & POLLOUT) != 0)
                send_some(mesh->fds[i], &parts[i]);
            if ((polls[i].revents & POLLIN) != 0)
                receive_some(mesh->fds[i], &parts[i]);
            if ((polls[i].revents & POLLHUP) != 0)
                poll(NULL, 0, STEP_MS);
        }
    }
    return !atomic_load(&mesh->stop);
}
