/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rank variables: each is one line of worker_vars.def, which gives its name, what its value is,
 * and when a worker gets it. Also what else differs from rank to rank, and from host to host. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "model/settings/words.h"

enum worker_value {
    /* of a rank */
    RANK,
    LOCAL_RANK,
    CROSS_RANK,
    CROSS_SIZE,
    SLOT,
    ERROR_FILE,
    COMMAND,
    ARGUMENTS,
    WDIR,
    PROGRESS_FILE,
    RANK_VALUES, /* from here on: of the node and the job */
    SIZE = RANK_VALUES,
    LOCAL_SIZE,
    NODE,
    NODES,
    EPOCH,
    RESTARTS,
    MAX_RESTARTS,
    APPS,
    HOST,
    JOB_ID,
    ROLE,
    ONE,
    MACHINE,
    RUNTIME_DIR,
    CONTROLLER,
    ELASTIC,
    DEADLINE_FILE,
    LINE_ADDRESS,
    RENDEZVOUS_ADDR,
    RENDEZVOUS_PORT,
    APP_SIZES,
    APP_FIRST_RANKS,
    NODE_RANKS,
    NODE_NAMES,
    TASKS_PER_NODE,
    VALUES
};

/* INHERITED: only rewritten when it was inherited. */
enum when { ALWAYS, YIELDS, PMIX, PMI1, INHERITED };

struct rank_variable {
    char name[32]; /* not a pointer: the start of a job compares all names with all variables */
    enum worker_value value;
    enum when when;
};

#define WORKER_VAR(name, value, when) +1
enum {
    RANK_VARIABLES = 0
#include "model/env/worker_vars.def"
};
#undef WORKER_VAR

/* RANK_VARIABLES entries. */
extern const struct rank_variable rank_variables[];

/* Whether a worker that is offered this kind of MPI gets the variable. */
bool rank_variable_applies(const struct rank_variable *variable, enum mpi_kind mpi);

/* The one whose name is the first `length` bytes of `name`; NULL: none. */
const struct rank_variable *rank_variable_find(const char *name, size_t length);

/* One that the user's -x cannot set? */
bool rank_variable_is_firm(const char *name, size_t length);

#define ENV_DIFFER_MAX 100 /* variables */

struct env_of_host {
    const char *host;
    const struct strv *env; /* "NAME=VALUE" */
};

/* Finds the variables that do not have the same value on all hosts, at most ENV_DIFFER_MAX. Calls
 * `each` for each host, variable by variable, in the order of the first host that has it. `value`
 * is NULL where it is unset. Variables that must differ from rank to rank do not count: names of
 * ranks and hosts, and those of hvdrun, MPI and Slurm. */
void env_differ(const struct env_of_host *hosts, size_t count,
                void (*each)(void *context, const char *name, const char *host, const char *value),
                void *context);

/* Such a variable must differ from rank to rank. */
bool env_differs_by_rank(const char *name);
