/* SPDX-License-Identifier: Apache-2.0 */
#include "node/facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "model/net/address.h"
#include "node/cgroup.h"
#include "node/gpus.h"

#define CPU_SET_LIMIT (1u << 20)

cpu_set_t *facts_affinity(size_t *size)
{
    /* the kernel refuses (EINVAL) a set smaller than its own */
    for (size_t cpus = 1024; cpus <= CPU_SET_LIMIT; cpus *= 2) {
        *size = CPU_ALLOC_SIZE(cpus);
        cpu_set_t *set = mem_alloc(*size);
        if (sched_getaffinity(0, *size, set) == 0)
            return set;
        free(set);
    }
    *size = sizeof(cpu_set_t);
    cpu_set_t *one = mem_alloc(*size);
    CPU_SET_S(0, *size, one);
    return one;
}

static void read_limits(struct node_facts *facts)
{
    static const struct node_limit known[NODE_LIMITS] = {
        {.name = "nofile", .resource = RLIMIT_NOFILE},
        {.name = "nproc", .resource = RLIMIT_NPROC},
        {.name = "core", .resource = RLIMIT_CORE},
        {.name = "stack", .resource = RLIMIT_STACK},
        {.name = "memlock", .resource = RLIMIT_MEMLOCK},
        {.name = "as", .resource = RLIMIT_AS},
        {.name = "cpu", .resource = RLIMIT_CPU},
        {.name = "fsize", .resource = RLIMIT_FSIZE}};
    for (size_t i = 0; i < NODE_LIMITS; i++) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
        (void)getrlimit((__rlimit_resource_t)known[i].resource, &limit);
        facts->limits[i] = known[i];
        facts->limits[i].hard = limit.rlim_max == RLIM_INFINITY ? UINT64_MAX : limit.rlim_max;
    }
}

static void read_boot_id(struct node_facts *facts)
{
    struct buf text AUTO_BUF = BUF_INIT(256);
    if (fd_read_file("/proc/sys/kernel/random/boot_id", &text, NULL) < 0)
        return;
    size_t length = strcspn(buf_text(&text), "\n");
    if (length < sizeof(facts->boot_id))
        memcpy(facts->boot_id, buf_text(&text), length);
}

/* The bytes of an address, in network order; NULL: the family is none of IP's. */
static const uint8_t *bytes_of(int family, const struct sockaddr *address, size_t *length)
{
    const uint8_t *bytes = (const uint8_t *)address;
    *length = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
    switch (family) {
    case AF_INET: return bytes + offsetof(struct sockaddr_in, sin_addr);
    case AF_INET6: return bytes + offsetof(struct sockaddr_in6, sin6_addr);
    default: return NULL;
    }
}

/* The bits that are set in a netmask; -1 without one. */
static int prefix_of(int family, const struct sockaddr *mask)
{
    size_t length;
    int bits = 0;
    if (mask == NULL)
        return -1;
    const uint8_t *bytes = bytes_of(family, mask, &length);
    for (size_t i = 0; i < length; i++)
        bits += __builtin_popcount(bytes[i]);
    return bits;
}

static bool address_text(const struct sockaddr *address, char text[INET6_ADDRSTRLEN])
{
    size_t length;
    const uint8_t *bytes = address == NULL ? NULL : bytes_of(address->sa_family, address, &length);
    return bytes != NULL && inet_ntop(address->sa_family, bytes, text, INET6_ADDRSTRLEN) != NULL;
}

size_t node_addresses_read(struct node_address **out)
{
    struct ifaddrs *list = NULL;
    *out = NULL;
    if (getifaddrs(&list) < 0)
        return 0;
    size_t count = 0;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        if (!address_text(at->ifa_addr, text))
            continue;
        MEM_ADD(*out, count) = (struct node_address){
            .iface = mem_strdup(at->ifa_name),
            .text = mem_strdup(text),
            .prefix = prefix_of(at->ifa_addr->sa_family, at->ifa_netmask),
            .ipv6 = at->ifa_addr->sa_family == AF_INET6,
            .up = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_RUNNING) != 0,
        };
    }
    freeifaddrs(list);
    return count;
}

void node_addresses_destroy(struct node_address *addresses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(addresses[i].iface);
        free(addresses[i].text);
    }
    free(addresses);
}

static void read_gpus(struct node_facts *facts)
{
    struct device_list gpus;
    gpus_list("", &gpus);
    facts->gpus = gpus_seen(&gpus);
    facts->gpus_listed = (int)gpus.count;
    facts->gpu_driver = gpus.count > 0 || gpus_have_control("");
    device_list_destroy(&gpus);
}

struct node_facts *node_facts_read(void)
{
    struct node_facts *facts = mem_alloc(sizeof(*facts));
    if (gethostname(facts->hostname, sizeof(facts->hostname) - 1) < 0)
        facts->hostname[0] = '\0';
    struct utsname uts;
    if (uname(&uts) == 0) {
        snprintf(facts->machine, sizeof(facts->machine), "%s", uts.machine);
        snprintf(facts->kernel, sizeof(facts->kernel), "%s", uts.release);
    }
    read_boot_id(facts);
    long online = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
    facts->cpus_online = online > 0 ? (int)online : 1;
    facts->memory_bytes = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    size_t size = 0;
    cpu_set_t *set AUTO_FREE = facts_affinity(&size);
    facts->cpus_allowed = CPU_COUNT_S(size, set);
    facts->cpu_quota = cgroup_cpu_quota();
    read_gpus(facts);
    read_limits(facts);
    facts->address_count = node_addresses_read(&facts->addresses);
    return facts;
}

void node_facts_destroy(struct node_facts *facts)
{
    if (facts == NULL)
        return;
    node_addresses_destroy(facts->addresses, facts->address_count);
    free(facts);
}

int node_facts_cpus(const struct node_facts *facts)
{
    int cpus = facts->cpus_allowed;
    if (facts->cpu_quota > 0 && facts->cpu_quota < cpus)
        cpus = facts->cpu_quota;
    return cpus > 0 ? cpus : 1;
}

static bool is_own_address(const struct network_address *address)
{
    struct node_address *addresses = NULL;
    if (address->fitness == NETWORK_LOOPBACK)
        return true;
    size_t count = node_addresses_read(&addresses), i = 0;
    while (i < count && strcmp(addresses[i].text, address->text) != 0)
        i++;
    node_addresses_destroy(addresses, count);
    return i < count;
}

static bool is_own_name(const char *name)
{
    static const char *const usual[] = {"localhost",  "localhost.localdomain", "localhost4",
                                        "localhost6", "ip6-localhost",         "ip6-loopback"};
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (strcasecmp(name, usual[i]) == 0)
            return true;
    }
    char own[256] = "";
    if (gethostname(own, sizeof(own) - 1) < 0 || own[0] == '\0')
        return false;
    size_t first_label = strcspn(own, ".");
    return strcasecmp(name, own) == 0 ||
           (strlen(name) == first_label && strncasecmp(name, own, first_label) == 0);
}

enum local_answer is_local_obviously(const char *name)
{
    struct network_address address;
    if (network_address_parse(name, &address))
        return is_own_address(&address) ? LOCAL_YES : LOCAL_NO;
    return is_own_name(name) ? LOCAL_YES : LOCAL_UNKNOWN;
}

bool is_local_address(const struct sockaddr *address)
{
    char text[INET6_ADDRSTRLEN];
    return address_text(address, text) && is_local_obviously(text) == LOCAL_YES;
}
