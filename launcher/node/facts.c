/* SPDX-License-Identifier: Apache-2.0 */
#include "node/facts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
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
        facts->limits[i].soft = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
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

/* The bits that are set in a netmask; -1 without one. */
static int prefix_of(int family, const struct sockaddr *mask)
{
    struct sockaddr_in v4 = {0};
    struct sockaddr_in6 v6 = {0};
    if (mask == NULL)
        return -1;
    memcpy(family == AF_INET ? (void *)&v4 : (void *)&v6, mask,
           family == AF_INET ? sizeof(v4) : sizeof(v6));
    int bits = __builtin_popcount(v4.sin_addr.s_addr);
    for (size_t i = 0; i < sizeof(v6.sin6_addr.s6_addr); i++)
        bits += __builtin_popcount(v6.sin6_addr.s6_addr[i]);
    return bits;
}

size_t node_addresses_read(struct node_address **out)
{
    struct ifaddrs *list = NULL;
    *out = NULL;
    if (getifaddrs(&list) < 0)
        return 0;
    size_t count = 0;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        int family = at->ifa_addr != NULL ? at->ifa_addr->sa_family : AF_UNSPEC;
        if (family != AF_INET && family != AF_INET6)
            continue;
        struct sockaddr_in v4 = {0};
        struct sockaddr_in6 v6 = {0};
        memcpy(family == AF_INET ? (void *)&v4 : (void *)&v6, at->ifa_addr,
               family == AF_INET ? sizeof(v4) : sizeof(v6));
        char text[INET6_ADDRSTRLEN];
        const void *bytes =
            family == AF_INET ? (const void *)&v4.sin_addr : (const void *)&v6.sin6_addr;
        if (inet_ntop(family, bytes, text, sizeof(text)) == NULL)
            continue;
        *out = mem_resize_array(*out, count + 1, sizeof(**out));
        (*out)[count++] = (struct node_address){
            .iface = mem_strdup(at->ifa_name),
            .text = mem_strdup(text),
            .prefix = prefix_of(family, at->ifa_netmask),
            .ipv6 = family == AF_INET6,
            .up = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_RUNNING) != 0,
            .loopback = (at->ifa_flags & IFF_LOOPBACK) != 0,
            .link_local = family == AF_INET6 ? IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)
                                             : ntohl(v4.sin_addr.s_addr) >> 16 == 0xa9feu,
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
    facts->page_size = sysconf(_SC_PAGESIZE);
    facts->memory_bytes = pages > 0 ? (uint64_t)pages * (uint64_t)facts->page_size : 0;
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

static bool is_interface_address(const char *text)
{
    struct node_address *addresses = NULL;
    size_t count = node_addresses_read(&addresses), i = 0;
    while (i < count && strcmp(addresses[i].text, text) != 0)
        i++;
    node_addresses_destroy(addresses, count);
    return i < count;
}

/* A numeric address: written in the one form that interfaces are listed in. */
static bool is_own_address(int family, const void *bytes)
{
    struct in6_addr six = {0};
    struct in_addr four = {0};
    if (family == AF_INET6) {
        memcpy(&six, bytes, sizeof(six));
        if (IN6_IS_ADDR_LOOPBACK(&six))
            return true;
        if (IN6_IS_ADDR_V4MAPPED(&six))
            return is_own_address(AF_INET, &six.s6_addr[12]);
    } else {
        memcpy(&four, bytes, sizeof(four));
        if (ntohl(four.s_addr) >> 24 == 127)
            return true;
    }
    char text[INET6_ADDRSTRLEN];
    if (inet_ntop(family, bytes, text, sizeof(text)) == NULL)
        return false;
    return is_interface_address(text);
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
    /* fe80::1%eth0: the scope names an interface here, the address is what counts */
    char plain[INET6_ADDRSTRLEN + 1] = "";
    size_t length = strcspn(name, "%");
    if (length < sizeof(plain))
        memcpy(plain, name, length);
    struct in6_addr bytes;
    if (inet_pton(AF_INET, plain, &bytes) == 1)
        return is_own_address(AF_INET, &bytes) ? LOCAL_YES : LOCAL_NO;
    if (inet_pton(AF_INET6, plain, &bytes) == 1)
        return is_own_address(AF_INET6, &bytes) ? LOCAL_YES : LOCAL_NO;
    return is_own_name(name) ? LOCAL_YES : LOCAL_UNKNOWN;
}

bool is_local_address(const struct sockaddr *address)
{
    struct sockaddr_in four = {0};
    struct sockaddr_in6 six = {0};
    switch (address->sa_family) {
    case AF_INET:
        memcpy(&four, address, sizeof(four));
        return is_own_address(AF_INET, &four.sin_addr);
    case AF_INET6:
        memcpy(&six, address, sizeof(six));
        return is_own_address(AF_INET6, &six.sin6_addr);
    default: return false;
    }
}
