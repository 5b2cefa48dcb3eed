/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about a job that has ended or failed, for its story (story.h). All is borrowed; a
 * text is NULL and a time is 0 if it is not known. Times are seconds since 1970. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"

struct explain_rank {
    int rank;
    const char *host;
    bool ended, signaled;
    int code;         /* exit code, or signal number */
    bool consequence; /* it ended because of another failure, or hvdrun ended it */
    bool oom, core;
    bool silent; /* it has never written anything */
    double ended_s;
    int pid; /* 0: not known */
    const char *
        request; /* "'hvdrun signal' (user alice, 14:03:22)" had sent it the signal that ended it */
    int64_t collective; /* in which it gave up, by its own count; 0: not known */
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
    bool ended,
        gone; /* ended: `status` is known; gone: hvdrun was killed before it could write it */
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
