/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule: everything that makes one simulated job: the core's configuration, what program its
 * workers run, and a list of (time, fault). It comes from a seed, or from a file that a shrunk
 * schedule was printed to; the same schedule always gives the same run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/elastic/elastic.h"

#define SCHEDULE_HOSTS 6
#define SCHEDULE_FAULTS 96

/* What happens to the world. `host` is the index of a simulated host, or, for faults of a worker,
 * it picks one of those that live then. */
/* clang-format off */
#define FAULT_LIST(X)                                                                            \
    X(FAULT_LIST_HOST, "list")         /* discovery shows `host` with `value` slots */           \
    X(FAULT_UNLIST, "unlist")                                                                    \
    X(FAULT_RELIST, "relist")          /* the same list once more, in another order */           \
    X(FAULT_DISCOVERY, "discovery-fails")                                                        \
    X(FAULT_POWER_OFF, "power-off")    /* value 1: silently, found out by its silence */         \
    X(FAULT_POWER_ON, "power-on")      /* value 1: with another boot id */                       \
    X(FAULT_AGENT_DIES, "agent-dies")                                                            \
    X(FAULT_STUCK, "stuck")            /* its agent does nothing but heartbeats, `value` ms */   \
    X(FAULT_SILENT, "silent")          /* no packet gets through, `value` ms */                  \
    X(FAULT_DRAIN, "drain")            /* value: ms to the deadline, or -1 */                    \
    X(FAULT_UNDRAIN, "undrain")                                                                  \
    X(FAULT_PREPARE_FAILS, "prepare-fails") /* `host` fails the next `value` preparations */     \
    X(FAULT_CRASH, "crash")            /* a worker: exit `value`, or signal -`value` */          \
    X(FAULT_EXIT_0, "exit-0")                                                                    \
    X(FAULT_HANG, "hang")                                                                        \
    X(FAULT_STUBBORN, "stubborn")      /* ends by SIGKILL only */                                \
    X(FAULT_REACTION, "reaction")      /* it will do `value` (enum reaction) when a peer fails */\
    X(FAULT_ASK, "ask")                /* it has an error of its own and rejoins */              \
    X(FAULT_DROP_ASK, "drop-ask")      /* a held request is given up and repeated */             \
    X(FAULT_STRAY_ASK, "stray-ask")    /* from nobody: local rank `value` */                     \
    X(FAULT_TRAP, "trap")              /* what the next worker on `host` is (enum trap) */       \
    X(FAULT_CRASHY, "crashy")          /* for `value` ms, what starts crashes */                 \
    X(FAULT_STRAY_EVENT, "stray-event") /* one that does not fit */                              \
    X(FAULT_JUMP, "jump")              /* the clock, by `value` ms, forward or backward */       \
    X(FAULT_LATE_TICKS, "late-ticks")  /* the loop is late by up to `value` ms from now on */    \
    X(FAULT_END, "end")                /* the driver ends the job */                             \
    X(FAULT_UNKILLED, "unkilled")      /* SIGKILL does not end a process there */                \
    X(FAULT_PROGRESS, "progress")      /* the program has come further than ever */

#define REACTION_LIST(X)                                                                         \
    X(REACTION_ASK, "ask") X(REACTION_EXIT_1, "exit-1") X(REACTION_EXIT_0, "exit-0")             \
    X(REACTION_ABORT, "abort") X(REACTION_HANG, "hang")

#define TRAP_LIST(X)                                                                             \
    X(TRAP_NONE, "none") X(TRAP_SPAWN_FAILS, "spawn-fails") X(TRAP_CRASH, "crash-at-start")      \
    X(TRAP_SLOW, "slow") X(TRAP_UNREGISTERED, "never-registers") X(TRAP_HANG, "hangs-at-start")  \
    X(TRAP_STUBBORN, "stubborn") X(TRAP_EXIT_0, "exit-0-at-start")                               \
    X(TRAP_SETUP_ABORT, "aborts-in-setup") X(TRAP_LATE_FINISHED, "holds-its-streams")

#define PROGRAM_LIST(X)                                                                          \
    X(PROGRAM_HOROVOD, "horovod") X(PROGRAM_PLAIN, "plain") X(PROGRAM_MIXED, "mixed")
/* clang-format on */

#define SCHEDULE_ENUM(name, text) name,
enum fault_kind { FAULT_LIST(SCHEDULE_ENUM) FAULTS };
enum reaction { REACTION_LIST(SCHEDULE_ENUM) REACTIONS };
enum trap { TRAP_LIST(SCHEDULE_ENUM) TRAPS };
enum program { PROGRAM_LIST(SCHEDULE_ENUM) PROGRAMS };
#undef SCHEDULE_ENUM

struct fault {
    int64_t at_ms; /* since the start of the job */
    enum fault_kind kind;
    int host;
    int64_t value;
};

struct schedule {
    uint64_t seed; /* of all that is not in the schedule: delays */
    struct elastic_config config;
    enum program program;
    int64_t work_ms; /* of undisturbed training until the job is done */
    int gate;        /* 1: the rendezvous has one (rendezvous/held.h) */
    int repeats;     /* percent of events that come twice */
    int hang_ms;     /* a watch tells of a hang after so long; 0: there is no watch */
    int fault_count;
    struct fault faults[SCHEDULE_FAULTS]; /* in order of time */
};

void schedule_generate(uint64_t seed, struct schedule *out);
const char *fault_name(enum fault_kind kind);

/* One line a setting or fault, as schedule_read() reads it. */
void schedule_print(const struct schedule *schedule, FILE *to);
int schedule_read(FILE *from, struct schedule *out, struct error *err);
