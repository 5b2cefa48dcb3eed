/* SPDX-License-Identifier: Apache-2.0 */
/* What `hvdrun check` finds out about hosts, and how it is shown. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/control.pb-c.h"

/*
 * gpu_test.c: what gpu_test.py prints, a line for each fact:
 *   none REASON                       it tests nothing
 *   torch VERSION, nccl VERSION
 *   speed UUID TFLOPS GB/S GB/S       one GPU, in the order of enum gpu_speed_kind
 *   busy UUID                         others use this GPU, so it is not tested
 *   reduce GPUS GB/S                  all of these together
 * As one of two ranks ("between RANK ADDRESS PORT INTERFACE"), it prints only
 *   between GB/S                      of an all-reduce with the other host
 */

/* Limits for both ends of `hvdrun check --gpu`. */
#define GPU_FACTS_MS 20000 /* what NVIDIA's library says of all GPUs of a host */
#define GPU_TEST_MS 120000 /* PyTorch alone can take 30 s to load from a network */
#define GPU_BETWEEN_MS 90000
#define GPU_ANSWER_MS 10000 /* for the rest of an answer */
#define GPU_TEST_TEXT_MAX ((size_t)64 << 10)

enum gpu_speed_kind {
    SPEED_COMPUTE, /* TFLOP/s of matrix products in bf16 */
    SPEED_MEMORY,  /* GB/s read and written, of copies within its memory */
    SPEED_HOST,    /* GB/s of copies from the host's memory */
    SPEEDS
};

struct gpu_speed {
    char uuid[96];
    double value[SPEEDS];
};

struct gpu_test {
    char *none;         /* why nothing is tested; NULL */
    char *torch, *nccl; /* versions; NULL */
    struct gpu_speed *speeds;
    size_t count;
    int reduce_gpus; /* 0: there was no all-reduce */
    double reduce;   /* GB/s that each GPU's links carry */
    double between;  /* GB/s with another host; 0: there was none */
};

/* Lines that are not as above are left out. */
void gpu_test_read(const char *text, size_t length, struct gpu_test *out);
const struct gpu_speed *gpu_test_find(const struct gpu_test *test, const char *uuid); /* or NULL */
void gpu_test_clear(struct gpu_test *test);

/*
 * result.c: everything that `hvdrun check` found out, before it is judged: the facts of each host,
 * and the result of each connection between two hosts.
 */

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
    int round;    /* of transfers */
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
uint64_t check_host_limit(const struct check_result *result, const struct check_host *host,
                          const char *name);

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

/* Returns it, borrowed until the next one. */
struct check_finding *check_findings_add(struct check_findings *findings, int host, bool fatal,
                                         const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void check_findings_clear(struct check_findings *findings);

/* Fatal findings first; otherwise in the order in which they were added. */
void check_findings_sort(struct check_findings *findings);

size_t check_findings_count(const struct check_findings *findings, bool fatal);
bool check_findings_has(const struct check_findings *findings, int host, bool fatal); /* exactly */

/* One line for each host, for people; and the words in it that the JSON has too. */
void check_table(const struct check_result *result, const struct check_findings *findings,
                 struct buf *out);

/* "ok", "warning", or the stage at which the host failed; borrowed. */
const char *check_state_word(const struct check_result *result,
                             const struct check_findings *findings, int host);

/* Name of the interface that has the host's address; "" when it is not known. */
void check_host_interface(const struct check_host *host, char *text, size_t room);

/*
 * gpu_judge.c: judges what `hvdrun check --gpu` found: facts in, findings out.
 *
 * A finding is fatal if a program cannot use a GPU, or if no host has one. The rest are warnings. A
 * figure is compared with the median of all GPUs of the same model.
 */

/* Tests of speed: below this share of the median, a GPU is slow. How fast a GPU reads from the host
 * also depends on its place there. */
#define GPU_SLOW 0.8
#define GPU_SLOW_HOST 0.5

/* Uncorrected ECC errors since the driver was loaded; UINT64_MAX: not known. The message has
 * corrected and uncorrected ones, each since then and ever. */
uint64_t check_gpu_errors(const Hvdrun__GpuHealth *gpu);

/* Appends the findings, in the order of the hosts. */
void check_judge_gpus(const struct check_result *result, struct check_findings *out);

/*
 * text.c: the output of `hvdrun check` for people: a table with one line for each host, the facts
 * that all hosts share, the network, the GPUs, and the findings.
 */

/* `brief` (--quiet): only the findings. */
void check_text(const struct check_result *result, const struct check_findings *findings,
                bool brief, struct buf *out);

/* Parts of check_text(). */
void check_text_facts(const struct check_result *result, struct buf *out);
void check_text_network(const struct check_result *result, struct buf *out);
void check_text_gpus(const struct check_result *result, struct buf *out);

/* json.c: the output of `hvdrun check --json`; docs/check.md describes the format. */

/* -1: it does not fit into `out`. */
int check_json(const struct check_result *result, const struct check_findings *findings, int status,
               struct buf *out);
