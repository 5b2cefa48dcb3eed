/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel says about the machine and its processes: each small file that is read holds the
 * next part of the input (place.h). The first byte chooses what is asked, and of which of two
 * machines: one with NVIDIA's driver, one with AMD's.
 */
#include <arpa/inet.h>
#include <unistd.h>

#include "base/buf.h"
#include "node/cgroup.h"
#include "node/descendants.h"
#include "node/facts.h"
#include "node/gpus.h"
#include "node/health.h"
#include "node/proc_state.h"
#include "node/room_test.h"
#include "place.h"
#include "rendezvous/peer.h"

#define DEVICES_MAX 16

static void make_pci(const char *machine, const char *address)
{
    char *folder AUTO_FREE = mem_printf("%s/sys/devices/pci0000:15/%s", machine, address);
    char *file AUTO_FREE = mem_printf("%s/local_cpulist", folder);
    char *link AUTO_FREE = mem_printf("%s/sys/bus/pci/devices/%s", machine, address);
    place_write(file, "", 0);
    place_link(link, folder);
}

static void make_machines(void)
{
    static const char *const files[] = {
        "nvidia/proc/driver/nvidia/gpus/0000:17:00.0/information",
        "nvidia/proc/driver/nvidia/gpus/0000:65:00.0/information",
        "nvidia/dev/nvidiactl",
        "nvidia/dev/nvidia0",
        "nvidia/dev/nvidia1",
        "nvidia/sys/class/infiniband/mlx5_0/ports/1/state",
        "nvidia/sys/class/infiniband/mlx5_0/ports/2/state",
        "amd/sys/class/kfd/kfd/topology/nodes/0/properties",
        "amd/sys/class/kfd/kfd/topology/nodes/1/properties",
        "amd/sys/class/kfd/kfd/topology/nodes/2/properties",
        "amd/sys/class/infiniband/rxe0/ports/1/state",
        "amd/dev/dri/renderD128",
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        place_write(files[i], "", 0);
    make_pci("nvidia", "0000:17:00.0");
    make_pci("nvidia", "0000:65:00.0");
    make_pci("amd", "0000:00:01.0");
    place_link("nvidia/sys/class/infiniband/mlx5_0/device",
               "nvidia/sys/bus/pci/devices/0000:17:00.0");
}

static void check_devices(struct device_list *list)
{
    FUZZ_CHECK(list->count <= DEVICES_MAX);
    for (size_t i = 0; i < list->count; i++) {
        FUZZ_CHECK(list->items[i].numa >= -1);
        device_distance(&list->items[i], &list->items[0]);
    }
    device_list_destroy(list);
}

static void ask_devices(const char *root)
{
    struct device_list list;
    gpus_read(root, &list);
    int seen = gpus_seen(&list);
    FUZZ_CHECK(seen >= 0 && seen <= DEVICES_MAX);
    check_devices(&list);
    nics_read(root, &list);
    check_devices(&list);
}

static void ask_memory(void)
{
    FUZZ_CHECK(cgroup_memory_counter("memory.events", "memory.oom_control", "oom_kill") >= -1);
    FUZZ_CHECK(cgroup_memory_counter("memory.max", "memory.limit_in_bytes", NULL) >= -1);
    struct oom_watch *watch = oom_watch_create();
    (void)oom_watch_verdict(watch, getpid());
    oom_watch_destroy(watch);
}

static void ask_facts(void)
{
    FUZZ_CHECK(cgroup_cpu_quota() >= 0);
    struct node_facts *facts = node_facts_read();
    FUZZ_CHECK(node_facts_cpus(facts) >= 1);
    FUZZ_CHECK(memchr(facts->boot_id, '\0', sizeof(facts->boot_id)) != NULL);
    node_facts_destroy(facts);
}

static void ask_processes(void)
{
    struct buf out AUTO_BUF = BUF_INIT(4096);
    pid_t *pids = NULL;
    for (size_t threads = 0; threads <= 64; threads += 64) {
        struct descendants_table *table = descendants_table_read(threads);
        FUZZ_CHECK(proc_state_report(table, getpid(), 4, &out) <= 4);
        descendants_table_destroy(table);
    }
    FUZZ_CHECK(out.length <= 4096);
    FUZZ_CHECK(descendants_list(getpid(), &pids) <= DESCENDANTS_MAX);
    free(pids);
    FUZZ_CHECK(descendants_scan(getpid(), NULL, &pids) <= DESCENDANTS_MAX);
    free(pids);
}

static void ask_health(const char *root)
{
    struct health health;
    health_read(root, "node1", &health);
    FUZZ_CHECK(health.own_address[0] == '\0' || strncmp(health.own_address, "127.", 4) == 0);
    FUZZ_CHECK(strchr(health.system, '\n') == NULL && strchr(health.gpu_driver, '\n') == NULL);
    health_clear(&health);
}

/* /proc/net/tcp, of which somebody else may make lines. */
static void ask_owner(const struct fuzz_bytes *bytes)
{
    struct sockaddr_in local = {.sin_port = htons(0x1f90)}, remote = {.sin_port = htons(0xc350)};
    char *text AUTO_FREE = fuzz_text(bytes->at, bytes->left);
    uid_t uid = 0;
    local.sin_addr.s_addr = remote.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rendezvous_peer_find(text, bytes->left, &local, &remote, &uid);
}

FUZZ_TARGET
{
    static char *roots[2];
    struct fuzz_bytes bytes = {data, size};
    if (roots[0] == NULL) {
        make_machines();
        roots[0] = place_path("nvidia");
        roots[1] = place_path("amd");
    }
    uint8_t choice = fuzz_u8(&bytes);
    const char *root = roots[choice & 1];
    ask_owner(&bytes);
    place_feed(&bytes);
    switch (choice >> 1 & 7) {
    case 0: ask_memory(); break;
    case 1: ask_facts(); break;
    case 2: ask_processes(); break;
    case 3: ask_health(root); break;
    default: ask_devices(root); break;
    }
    place_feed(NULL);
    return 0;
}
