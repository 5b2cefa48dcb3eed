/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts have answered, and what goes into a folder of evidence (evidence_folder_driver.c), as
 * JSON and as text. */
#pragma once

#include "driver/job/job.h"
#include "driver/job/part.h"
#include "model/exit/record.h"
#include "wire/control.pb-c.h"

struct json_t;

/* In the facts, which stay below the 4 MiB of a file. */
#define EVIDENCE_RANKS_MAX 4096
#define EVIDENCE_HOSTS_BYTES ((size_t)1280 << 10)      /* texts of all hosts together */
#define EVIDENCE_ENVIRONMENT_BYTES ((size_t)256 << 10) /* names, hosts and values */

struct evidence_file {
    int node;      /* its index */
    int rank;      /* -1: it is about the host */
    char *name;    /* in the folder; NULL: it is missing */
    char *missing; /* why */
};

/* What a host has answered. */
struct evidence_host {
    Hvdrun__Evidence *answer; /* NULL: none came */
    Hvdrun__GpuHealths *gpus; /* NULL: none, or not known */
    char *gpus_missing;       /* why some are not there; NULL */
};

struct evidence_answers {        /* of the hosts */
    struct evidence_host *hosts; /* by the node's index */
    int host_count;
    struct evidence_file *files;
    size_t file_count, file_bytes;
};

void evidence_answers_clear(struct evidence_answers *answers);

struct evidence_facts { /* all borrowed */
    enum incident_kind kind;
    const char *text; /* what has happened, one line */
    int rank;         /* that it is about, or that is to blame; -1: none */
    int64_t when_ns;  /* the wall clock */
    int epoch;        /* in which it happened */
    bool by_nccl;     /* NCCL has named the rank */
    const struct evidence_answers *answers;
};

/* facts.json. The caller frees it. */
char *evidence_json_facts(const struct job *job, const struct evidence_facts *facts);

/* report.json: the report, without the command line, which may have secrets. The caller frees it.
 */
char *evidence_json_report(const struct job *job);

/* Where the folders are, in the record of the end; nothing if there are none. */
void evidence_json_record(const struct job *job, const struct strv *paths, struct json_t *end);

/* lines.txt: what each rank wrote to its stderr and its stdout last, and the last output of all.
 * Each rank has the same room in `out`, which has a limit. The lines of a rank are indented. */
void evidence_lines(const struct job *job, struct buf *out);
