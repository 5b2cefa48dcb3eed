/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver knows about every worker: the records that the exit policy, reports and messages
 * read. Records are found by seat. In a static job the seat is the rank. In an elastic job workers
 * take a seat one after the other, and the record is about the last one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/exit/tail.h"
#include "model/plan/plan.h"

#define RANK_STATE_LIST(X)         \
    X(RANK_PLANNED, "not started") \
    X(RANK_RUNNING, "running")     \
    X(RANK_EXITED, "exited")       \
    X(RANK_FINISHED, "finished")

enum rank_state {
#define RANK_STATE_ENUM(name, text) name,
    RANK_STATE_LIST(RANK_STATE_ENUM)
#undef RANK_STATE_ENUM
};

struct rank_record {
    enum rank_state state;
    int rank, local_rank, app; /* of the last epoch in which it took part */
    int node;                  /* index in job->nodes */
    uint32_t epoch;            /* in which it was started; 0: the seat has never been taken */
    int world, world_rank;     /* world 1 or later: a rank has spawned it; 0: none has */
    uint32_t joined;           /* the last epoch in which it took part, or was to; 0: none */
    pid_t pid;                 /* 0: never ran */
    int64_t started_ns;        /* driver's monotonic clock; 0: never */
    int64_t ended_ns;
    int64_t ending_ns; /* its agent saw that it was ending, before it had ended; 0: it did not */
    bool signaled;
    int code; /* exit code, or signal number */
    bool core, oom, exec_failed, cut;
    bool ended_by_us; /* hvdrun had begun to end it before its exit */
    char *stopped; /* why it cannot go on, when its agent looked last: "stopped (SIGSTOP)"; NULL */
    int64_t stopped_ns; /* when that look came */
    bool straggles;     /* it is far behind the others (features/straggler) */
    bool silent;        /* it has never written or reported what most others have (there, too) */
    bool aborted;       /* it aborted the job (MPI_Abort) */
    int abort_status;   /* 1 to 255 */
    uint8_t ended;      /* a bit for each stream whose end of file has come */
    struct tail tail;   /* of its stderr, or of the stream that its stderr is merged into */
    uint64_t output;    /* bytes of its streams that have come */
    int64_t output_ns;  /* when its agent read the last of them, on our clock; 0: none yet */
    char *text;         /* exec_failed: the reason; else the program's own error file; or NULL */
    int requested;      /* the last signal that another command sent to it; 0: none */
    char *requester;    /* that command, and the user and time: "'hvdrun signal' (...)" */
    uint64_t user_us, system_us, max_rss_kb;
    uint64_t output_lines; /* counted only with --metrics or --metrics-file */
};

struct rank_table {
    struct rank_record *records;
    int size;
    int running, exited, finished; /* of the present records; exited includes finished */
    int left_mpi; /* the first seat that has exited with 0, without MPI_Finalize; -1: none */
};

void rank_table_init(struct rank_table *table, int size);
void rank_table_destroy(struct rank_table *table);

/* A new worker takes a seat; the table grows as needed. The old record is cleared. */
struct rank_record *rank_table_seat(struct rank_table *table, int seat);
void rank_table_keep(struct rank_table *table, int size); /* the first seats, and no others */
/* Another command sends it this signal. `by`: requester. */
void rank_requested(struct rank_record *record, int signal, const char *by);
/* The requester of the signal that ended it. Borrowed. NULL: nobody asked for it. */
const char *rank_end_requester(const struct rank_record *record);
const char *rank_state_name(enum rank_state state);
/* All ranks of the world to which this one belongs have finished. Never true of world 0. */
bool rank_world_is_over(const struct rank_table *table, int seat);

/* What an agent says of a rank that runs; "": it can go on. */
void rank_stopped(struct rank_record *record, const char *why, int64_t when_ns);

/* Each returns false if the event does not fit the state of the rank (a repeated or late frame). */
bool rank_started(struct rank_table *table, int seat, pid_t pid, int64_t when_ns);
bool rank_exited(struct rank_table *table, int seat, int64_t when_ns);
bool rank_finished(struct rank_table *table, int seat);
/* The seats on this node whose workers were to start and never have, whatever their epoch. They
 * have now ended by this signal, which we have sent. Returns how many; the caller frees `seats`. */
int rank_end_unstarted(struct rank_table *table, int node, int signal, int64_t when_ns,
                       int **seats);
