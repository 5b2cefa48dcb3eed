/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a job has failed, from what hvdrun has kept: facts about it, what hosts say, the cause by a
 * table, and the story that `hvdrun explain` tells. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/strv.h"

/* The facts. All is borrowed; a text is NULL and a time is 0 if it is not known. Times are seconds
 * since 1970. */

struct explain_rank {
    int rank;
    const char *host;
    bool ended, signaled;
    int code;         /* exit code, or signal number */
    bool consequence; /* it ended because of another failure, or hvdrun ended it */
    bool oom, core;
    bool silent; /* it has never written anything */
    double ended_s;
    int pid;             /* 0: not known */
    const char *request; /* "'hvdrun signal' (user alice, 14:03:22)" had sent the signal */
    int64_t collective;  /* in which it gave up, by its own count; 0: not known */
};

struct explain_gpu {
    int index;
    const char *pci;       /* "00000000:3B:00.0" */
    const char *trouble;   /* "is lost", "needs a reset" */
    const char *slowed_by; /* why its clocks are lower than they should be */
    int celsius;           /* 0: not known */
    bool remapping_pending, remapping_failed;
    int64_t uncorrected; /* ECC errors since its driver was loaded; 0 too if not known */
};

struct explain_host {
    const char *host;
    bool lost;       /* which is what happened first */
    bool lost_later; /* or its agent did not end with the job */
    bool silent;     /* it did not answer when it was asked */
    /* as features/evidence/host_evidence.h takes them */
    const char *pressure, *memory, *cores, *folders, *kernel, *xid;
    const struct explain_gpu *gpus;
    size_t gpu_count;
    const char *gpus_missing; /* why some are not there */
};

struct explain_facts {
    const char *job;
    const char *kind;  /* of the evidence: "failure", "hang", "timeout" */
    const char *cause; /* as the report says it: "exit", "signal", "interrupted" and so on */
    const char *what;  /* one line: what happened first */
    int rank;          /* that it is about; -1: none */
    bool ended, gone;  /* `status` is known; hvdrun was killed before it could write it */
    int status;
    double started_s, when_s, ended_s; /* when_s: of what happened first */
    const struct explain_rank *ranks;
    size_t rank_count;
    const struct explain_host *hosts;
    size_t host_count;
    const char *said, *printed; /* the last lines that this rank wrote to stderr and stdout */
    struct strv differ;         /* "OMP_NUM_THREADS: 1 on a, 8 on b" */
    struct strv loaded;         /* libraries of the ranks; those that differ come first */
    size_t flights;             /* dumps of PyTorch's flight recorder in the folder */
    const char *store_waits;    /* which ranks waited in PyTorch's store, and for whom; NULL */
    const char *nccl;           /* the file with NCCL's answer, if NCCL has named the rank */
    bool has_folder;            /* of evidence: there are stacks.txt and lines.txt */
};

/* host_signs.c: what stands out in the evidence of a host: memory kills, GPUs, pressure, full
 * folders, lines of the kernel. */

/* `host` is one of the facts. Lines of the kernel that are older than the job are about something
 * else. */
void host_signs(const struct explain_facts *facts, const struct explain_host *host,
                struct strv *out);

/* "oom_kill", of the cgroup; 0: none, or not known. */
long host_signs_memory_kills(const struct explain_host *host);
/* A folder that is full. The caller frees it. NULL: none. */
char *host_signs_full_folder(const struct explain_host *host);

enum gpu_fault {
    GPU_FAULT_NONE,
    GPU_FAULT_PROGRAM, /* most likely of the program that used it */
    GPU_FAULT_GPU,
};

/* The worst one. `since_s`: older lines of the kernel do not count; 0: not known. */
enum gpu_fault gpu_signs_fault(const struct explain_host *host, double since_s);

/* The lines in which NVIDIA's driver reports an error of a GPU to the kernel's log:
 *
 *   NVRM: Xid (PCI:0000:3b:00): 31, pid=2091, name=python3, channel 0x0000000a, ...
 */

enum xid_blame {
    XID_NOBODY,  /* not known, or a consequence of another one */
    XID_PROGRAM, /* most often what runs on the GPU */
    XID_GPU,     /* the GPU, its links or its driver */
};

struct xid {
    char pci[32]; /* without the function, as the line has it: "0000:3b:00" */
    int number;
    char pid[16];  /* as the line has it; "": not known */
    char name[32]; /* of the process; likewise */
};

/* `line`: up to its end or a newline. false: it is none. */
bool xid_read(const char *line, struct xid *out);

const char *xid_text(int number); /* NULL: it has no name here */
enum xid_blame xid_blame(int number);

/* Is it about the GPU with this address, "00000000:3B:00.0"? */
bool xid_is_of(const struct xid *xid, const char *pci);

/* view.c: what the table of causes (cause_list.def) asks about a failure: facts that hold or do not
 * hold. */

struct error_text;

struct view { /* all is borrowed */
    const struct explain_facts *facts;
    const struct explain_rank *rank; /* that the story is about; NULL: none */
    const struct explain_host *host; /* of the rank; NULL: not known */
    const struct error_text *error;  /* of the rank's output */
    size_t at;                       /* its line that the present row is about */
};

struct view view_of(const struct explain_facts *facts, const struct explain_rank *rank);

#define CAUSE(group, when, signal, words, plain, advice) bool fact_##when(const struct view *v);
#include "features/evidence/cause_list.def"
#undef CAUSE

/* The host that the facts are about. NULL: there is none. */
const struct explain_host *view_lost_host(const struct view *v);
const struct explain_host *view_gpu_host(const struct view *v, enum gpu_fault fault);
const struct explain_host *view_full_host(const struct view *v);

/* The first and the last of the collective operations in which ranks gave up; 0: not known. */
void view_collectives(const struct view *v, int64_t *behind, int64_t *ahead);

/* cause.c: why a rank or a job failed, in plain words, and what to do, by the table in
 * cause_list.def. */

struct explain_finding {
    char *plain;        /* what happened first is this; NULL: nothing to add */
    struct strv advice; /* the most important one first; at least one */
    struct strv quoted; /* of the rank's output */
    const char *stream; /* that they are of; NULL: nothing is quoted */
};

/* `rank`: that the story is about; NULL: none. */
void explain_find(const struct explain_facts *facts, const struct explain_rank *rank,
                  struct explain_finding *out);
void explain_finding_destroy(struct explain_finding *finding);

/*
 * story.c: the story of a failure in at most EXPLAIN_LINES lines: what happened first, where,
 * what it caused, what the hosts say about it, which libraries were loaded, and what to do.
 *
 * It says only what the facts say. A kernel's line is quoted, and may be about something else.
 */

#define EXPLAIN_LINES 26

enum explain_part {
    EXPLAIN_FIRST,
    EXPLAIN_WHERE,
    EXPLAIN_CAUSED,
    EXPLAIN_HOSTS,
    EXPLAIN_LOADED,
    EXPLAIN_DO,
    EXPLAIN_PARTS
};

extern const struct explain_title {
    const char *key, *title; /* in JSON; for people */
    size_t most;             /* lines of this part */
} explain_titles[EXPLAIN_PARTS];

struct explain_story {
    char *headline;
    struct strv parts[EXPLAIN_PARTS]; /* no part has more lines than its title says */
};

void explain_tell(const struct explain_facts *facts, struct explain_story *out);
void explain_story_destroy(struct explain_story *story);

void explain_story_text(const struct explain_story *story, struct buf *out);
