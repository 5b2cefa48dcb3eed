/* SPDX-License-Identifier: Apache-2.0 */
/* What a crew needs before its first worker can start. */
#pragma once

#include "agent/crew_apps.h"
#include "agent/crew_binding.h"
#include "agent/crew_config.h"
#include "agent/mpi_host.h"
#include "agent/rank_places.h"
#include "io/child.h"
#include "model/env/worker.h"
#include "node/cgroup.h"
#include "node/route.h"
#include "node/runtime_dir.h"

struct crew_setup {
    const struct crew_config *config;
    Hvdrun__Prepare *prepare;
    struct rank_places places;
    int cpu_ranks;                   /* ranks of the job that use the CPUs of this machine */
    struct runtime_dir *runtime_dir; /* NULL: none could be made */
    char *deadline_file;             /* in it; NULL likewise */
    struct runtime_dir *shm_dir;     /* for the memory that MPI ranks share; NULL: none */
    struct crew_apps apps;
    struct strv knobs;
    size_t node_count, node_index; /* only nodes with ranks count */
    char *node_names;
    int *node_sizes;
    struct crew_binding binding;
    struct node_env *env; /* since START; it borrows the next two */
    char *master_addr;
    struct route route;    /* of the workers' own traffic; READY reports it */
    struct mpi_world *mpi; /* NULL: no MPI for these workers */
    struct child_limit *limits;
    size_t limit_count;
    int master_fd, jax_fd; /* held ports; -1 */
    int master_port, jax_port;
    int ras_port;    /* of NCCL; 0: none was free */
    int no_terminal; /* errno: workers that are linked with MPI get a pipe as stdout; 0 */
    int pipes;       /* workers that have got one instead of a terminal */
};

/* Takes `prepare`. -1: `err` says why the crew cannot start; destroy works in either case. */
int crew_setup_fill(struct crew_setup *setup, const struct crew_config *config,
                    Hvdrun__Prepare *prepare, const struct mpi_job_ops *mpi_ops, void *context,
                    struct error *err);
void crew_setup_env(struct crew_setup *setup, const Hvdrun__Start *start);
char *crew_setup_error_file(const struct crew_setup *setup, uint32_t rank); /* NULL: none */
void crew_setup_leave_folders(struct crew_setup *setup);
void crew_setup_destroy(struct crew_setup *setup);
