/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that a test orders: `--crash 1@20` and its like, as many as the test wants. Each is
 * RANK@STEP[:NUMBER], with `all` for every rank; the rank is the one at that moment. With --once
 * FOLDER, a fault happens once in the job, or NUMBER times if it can be repeated. With `all`, that
 * is the number for each rank.
 */
#pragma once

#include "worker.h"

#include <fcntl.h>

struct fault {
    const char *name, *text; /* "--crash", "1@20:3" */
    int rank;                /* -1: all */
    long step, number;       /* 0: no number was given */
};

static struct fault fault_parse(const char *name, const char *text)
{
    const char *at = strchr(text, '@');
    if (at == NULL) {
        dprintf(2, "elastic_horovod: %s %s: expected RANK@STEP[:NUMBER]\n", name, text);
        exit(2);
    }
    const char *colon = strchr(at, ':');
    return (struct fault){.name = name,
                          .text = text,
                          .rank = strncmp(text, "all@", 4) == 0 ? -1 : (int)strtol(text, NULL, 10),
                          .step = strtol(at + 1, NULL, 10),
                          .number = colon != NULL ? to_number(colon + 1) : 0};
}

/* Takes one of the `times` markers of this fault; false: all are taken. */
static bool fault_claim(const struct fault *fault, const char *folder, int rank, long times)
{
    for (long i = 0; i < times; i++) {
        char path[4096], who[32] = "";
        if (fault->rank < 0)
            snprintf(who, sizeof(who), "-rank%d", rank);
        snprintf(path, sizeof(path), "%s/%s-%s%s-%ld", folder, fault->name + 2, fault->text, who,
                 i);
        int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (fd >= 0) {
            close(fd);
            return true;
        }
    }
    return false;
}

/* Whether a fault of this name is due for this rank at this step (or, `late`, since an earlier
 * one). */
static bool fault_due(int argc, char **argv, const char *name, int rank, int64_t step_now,
                      bool late, struct fault *due)
{
    const char *folder = option(argc, argv, "--once", NULL);
    bool repeats = strncmp(name, "--crash", strlen("--crash")) == 0;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) != 0)
            continue;
        *due = fault_parse(name, argv[i + 1]);
        if ((due->rank >= 0 && due->rank != rank) ||
            (late ? step_now < due->step : step_now != due->step))
            continue;
        long times = repeats && due->number > 0 ? due->number : 1;
        if (folder == NULL || fault_claim(due, folder, rank, times))
            return true;
    }
    return false;
}
