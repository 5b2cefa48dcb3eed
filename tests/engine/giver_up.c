/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer connects to a rank and gives up before the rank has looked at the connection. The rank is
 * stopped meanwhile, as on a starved machine. Gloo's thread of the rank throws an exception that
 * nobody catches if the connection was reset, so the peer must close it in good order. Exits with 0
 * if the rank says that the connection has failed.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/gloo/shim.h"

#define SIZE 2
#define TIMEOUT_MS 5000

struct place {
    unsigned char addresses[1024]; /* a sockaddr for each peer */
    size_t length;
};

static struct mesh *listen_as(int rank, struct device *device, struct place *place)
{
    struct error err = ERROR_INIT;
    struct mesh *mesh;
    if (mesh_create(device, rank, SIZE, TIMEOUT_MS, &mesh, &err) != HVD_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    const void *addresses = mesh_addresses(mesh, &place->length);
    if (place->length > sizeof(place->addresses))
        exit(2);
    memcpy(place->addresses, addresses, place->length);
    return mesh;
}

/* The port at which the rank listens for its only peer, as Gloo compares it. */
static int port_of(const struct place *place, int peer)
{
    struct sockaddr_in address;
    memcpy(&address, place->addresses + place->length / SIZE * (size_t)peer, sizeof(address));
    return address.sin_port;
}

static int victim(struct device *device, int out, int in)
{
    struct error err = ERROR_INIT;
    struct place own = {.length = 0}, other;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct mesh *mesh = listen_as(0, device, &own);
    if (write(out, &own, sizeof(own)) < 0 ||
        read(in, &other, sizeof(other)) < (ssize_t)sizeof(other))
        return 2;
    enum hvd_status status = mesh_connect(mesh, 1, other.addresses, other.length, &err);
    if (status == HVD_OK)
        status = mesh_barrier(mesh, &err);
    printf("status %d: %s\n", status, err.text);
    mesh_destroy(mesh);
    return status == HVD_OK;
}

/* Rank 1. The one with the greater port connects; the kernel of the other accepts for it. */
static void give_up(struct device *device, const struct place *other, struct place *own, bool wake)
{
    struct error err = ERROR_INIT;
    struct mesh *mesh = listen_as(1, device, own);
    while (port_of(own, 0) < port_of(other, 1)) {
        mesh_destroy(mesh);
        mesh = listen_as(1, device, own);
    }
    if (mesh_connect(mesh, 0, other->addresses, other->length, &err) != HVD_OK)
        exit(2);
    if (wake)
        mesh_wake(mesh);
    mesh_destroy(mesh);
}

/* Each process needs a device of its own: the device has a thread. */
static struct device *open_device(void)
{
    struct error err = ERROR_INIT;
    struct device *device;
    if (device_create("lo", &device, &err) == HVD_OK)
        return device;
    fprintf(stderr, "%s\n", err.text);
    exit(2);
}

static int be_the_victim(int up, int down)
{
    struct device *device = open_device();
    int result = victim(device, up, down);
    device_destroy(device);
    return result;
}

static int try(bool wake)
{
    int up[2], down[2], status;
    struct place other, own;
    if (pipe(up) < 0 || pipe(down) < 0)
        return 2;
    pid_t child = fork();
    if (child == 0)
        exit(be_the_victim(up[1], down[0]));
    if (child < 0 || read(up[0], &other, sizeof(other)) != (ssize_t)sizeof(other))
        return 2;
    kill(child, SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    struct device *device = open_device();
    give_up(device, &other, &own, wake);
    device_destroy(device);
    if (write(down[1], &own, sizeof(own)) < 0)
        return 2;
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "the rank was killed by signal %d\n", WTERMSIG(status));
    return 1;
}

int main(int argc, char **argv)
{
    return try(argc == 2 && strcmp(argv[1], "wake") == 0);
}
