/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of the job, as this node will run them. Each is found by its own PATH, and has its
 * environment and the kind of MPI that it is offered.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strv.h"
#include "model/settings/words.h"
#include "wire/control.pb-c.h"

/* One program of the job as this node will run it. */
struct crew_app {
    char *path; /* resolved */
    struct strv argv;
    char *arguments;   /* argv[1..], joined */
    struct strv env;   /* its own -x */
    const char *wdir;  /* borrowed; NULL: where the agent is */
    bool requires_mpi; /* it is linked with MPI, or the user said so */
    bool links_mpi;    /* it, or what it runs in an image, whatever the user said */
};

struct crew_apps {
    struct crew_app *items; /* as in PREPARE */
    size_t count;
    enum mpi_kind *kinds; /* by app */
    struct strv reasons;  /* by app: why it has this kind, as in "needs libmpi.so.40 (Open MPI)" */
    int *np;              /* by app: its ranks in the whole job */
    struct strv base_env; /* what all workers start from */
    struct strv notes;    /* for READY: the kind of MPI of each, and why */
    bool needs_mpi;       /* some app requires it */
    int problem;          /* the app that cannot be started; -1: none */
};

/* `prepare` is borrowed until crew_apps_destroy(). `offers_mpi`: these workers can have MPI. -1:
 * `err` says which program cannot be started and why; destroy works in either case. */
int crew_apps_fill(struct crew_apps *apps, const Hvdrun__Prepare *prepare, bool offers_mpi,
                   const struct log *log, struct error *err);
void crew_apps_destroy(struct crew_apps *apps);

/* A value as the workers of this app will see it; NULL: not set. Borrowed. */
const char *crew_apps_getenv(const struct crew_apps *apps, size_t app, const char *name);
