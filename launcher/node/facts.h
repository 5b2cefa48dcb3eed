/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of this machine as its processes see them, for the HELLO of an agent.
 *
 * What a container hides is not found: CPUs are those that this process may use, within the limits
 * of its cgroup. Nothing here asks another machine (no DNS).
 *
 * is_local_*: whether a name or an address of a host means this machine.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node_address {
    char *iface; /* name of the interface */
    char *text;  /* numeric address, without a scope */
    int prefix;  /* bits of its subnet; -1: not known */
    bool ipv6, up;
};

/* A resource limit; UINT64_MAX is unlimited. */
struct node_limit {
    const char *name; /* static: "nofile" */
    int resource;     /* RLIMIT_* */
    uint64_t hard;
};

#define NODE_LIMITS 8

struct node_facts {
    char hostname[256]; /* as gethostname() says it */
    char boot_id[40];   /* "" when the kernel does not tell */
    char machine[66];   /* uname -m */
    char kernel[66];    /* uname -r */
    int cpus_online;
    int cpus_allowed; /* by affinity */
    int cpu_quota;    /* by the cgroup's CPU quota, rounded up; 0: none */
    int gpus;         /* those that this process sees (gpus.h) */
    int gpus_listed;  /* seen or not */
    bool gpu_driver;  /* there are GPUs, or there may be some that gpus.h does not list */
    int gpus_told;    /* by nvidia-smi, where nothing else lists them; all, seen or not */
    uint64_t memory_bytes;
    struct node_limit limits[NODE_LIMITS];
    struct node_address *addresses; /* in the system's order */
    size_t address_count;
};

struct node_facts *node_facts_read(void); /* never fails: what cannot be found is 0 or "" */
void node_facts_destroy(struct node_facts *facts);

/* CPUs that workers can really use: the affinity, or less where a quota says so; at least 1. */
int node_facts_cpus(const struct node_facts *facts);

/* The CPUs this process may use, as large as the kernel wants it; freed with free(). */
cpu_set_t *facts_affinity(size_t *size);

/* The addresses of this machine's interfaces. The caller frees with node_addresses_destroy(). */
size_t node_addresses_read(struct node_address **out);
void node_addresses_destroy(struct node_address *addresses, size_t count);

/* Does this host name or address mean this machine? That needs no resolver for localhost, loopback
 * addresses, this machine's own name and the addresses of its interfaces. Any other name must be
 * resolved first, which is not done here. */
enum local_answer { LOCAL_NO, LOCAL_YES, LOCAL_UNKNOWN /* only the resolver could tell */ };

enum local_answer is_local_obviously(const char *name); /* never resolves */
struct sockaddr;
bool is_local_address(const struct sockaddr *address);
