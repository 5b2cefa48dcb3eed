/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that `hvdrun check` found out, before it is judged: the facts of each host, and the
 * result of each connection between two hosts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "features/check/gpu_test.h"
#include "wire/control.pb-c.h"

struct check_host {
    const char *name;  /* borrowed */
    char *stage, *why; /* not NULL: the host failed; the stage it reached, and why */
    bool is_here;      /* its agent was started on this machine */
    const char *peer;  /* numeric address by which we reach it; "": not known; borrowed */
    char *login;       /* what the transport said about user, key and host key; NULL */
    const Hvdrun__AgentHello *hello; /* NULL: its agent has never answered; borrowed */
    Hvdrun__Facts *facts;            /* NULL: not heard */
    bool clock_known;
    int64_t clock_ns, clock_error_ns; /* its wall clock minus ours, and how wrong that may be */
    char *address;                    /* by which the others reach its workers; NULL */
    char *door_problem;               /* the agent cannot listen there: why; NULL */

    /* Only with --gpu, and on one of the hosts that are the same machine: */
    Hvdrun__GpuHealths *gpus; /* NULL: not heard */
    char *gpus_missing;       /* why some or all of it is not there; NULL */
    struct gpu_test gpu_test;
    char *gpu_test_problem; /* why the test did not end well; NULL */
    double between;         /* GB/s of an all-reduce with another host; 0: not known */
    int between_pairs;      /* how many hosts it has made one with */
    char *between_problem;  /* why one did not end well; NULL */
    int between_peer;       /* with that host */
};

struct check_link {
    int from, to; /* numbers of hosts */
    bool tried;
    Hvdrun__ProbeOutcome outcome;
    char *text; /* with PROBE_BROKEN; NULL */
    char source[46];
    int64_t connect_us;
    uint64_t bytes; /* that arrived within `transfer_us`; 0: no transfer was made */
    int64_t transfer_us;
    char *transfer_problem; /* NULL */
};

struct check_result {
    struct check_host *hosts; /* in the order in which they were given */
    int count;
    struct check_link *links; /* ordered by `from`, then `to` */
    size_t link_count;
    bool simulated;        /* simulated hosts (--transport local): all of them are this machine */
    bool needs_pmix;       /* --mpi=pmix: no job without it */
    bool net;              /* transfers were asked for */
    bool gpu;              /* GPUs were asked for */
    int silence_s;         /* limit of each connection */
    char *network_problem; /* the hosts have no network that a job could use; NULL */
    uint64_t nofile, nproc, memlock; /* soft limits of the user's shell; UINT64_MAX: unlimited */
};

void check_result_clear(struct check_result *result); /* frees what it points to */

/* NULL: there is no such link. The second also returns NULL for a link that was not tried. */
struct check_link *check_result_find(const struct check_result *result, int from, int to);
const struct check_link *check_result_link(const struct check_result *result, int from, int to);

/* The limit of a worker on this host: ours, or the limit of the host if that is lower. */
uint64_t check_host_limit(const struct check_host *host, const char *name, uint64_t ours);

/* "known", "added" (to known_hosts, by this run), "new" (could not be added), "" without a host
 * key. Static. */
const char *check_host_key(const struct check_host *host);

/* NULL: not heard. */
const Hvdrun__CheckFolder *check_host_folder(const struct check_host *host, const char *what);

/* "15.6G", at most 5 characters and the end. */
void check_size_text(uint64_t bytes, char text[16]);

/* The problems and warnings of `hvdrun check`. */
struct check_finding {
    int host;   /* -1: all of them */
    bool fatal; /* a job would not run; else a warning */
    bool bad;   /* a GPU there is broken or slow: jobs should leave the host out */
    bool pair;  /* about its connection to one other host, which may be the cause */
    char *text; /* cause and remedy, without the host's name */
};

struct check_findings {
    struct check_finding *items;
    size_t count;
};

void check_findings_add(struct check_findings *findings, int host, bool fatal, const char *format,
                        ...) __attribute__((format(printf, 4, 5)));
void check_findings_clear(struct check_findings *findings);

/* Fatal findings first; otherwise in the order in which they were added. */
void check_findings_sort(struct check_findings *findings);

size_t check_findings_count(const struct check_findings *findings, bool fatal);
bool check_findings_has(const struct check_findings *findings, int host, bool fatal); /* exactly */
