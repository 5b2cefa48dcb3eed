/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hvdrun kubernetes` prints the manifests that run a job in the pods of a cluster.
 *
 *   job      an indexed Job: pod 0 runs hvdrun, and the others dial in
 *   jobset   the same pods as the one job of a JobSet, which starts all of them again at once
 *   mpijob   MPI Operator makes the pods, and their SSH, and hvdrun is the launcher
 *   trainjob Trainer makes the pods, which all run the same line of hvdrun torchrun
 *
 * What the objects mean is in docs/kubernetes.md. tests/flow/kube.py knows all their fields.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* clang-format off */
#define MANIFEST_KIND_LIST(X) \
    X(MANIFEST_JOB, "job") X(MANIFEST_JOBSET, "jobset") X(MANIFEST_MPIJOB, "mpijob") X(MANIFEST_TRAINJOB, "trainjob")
/* clang-format on */

enum manifest_kind {
#define MANIFEST_ENUM(name, word) name,
    MANIFEST_KIND_LIST(MANIFEST_ENUM)
#undef MANIFEST_ENUM
        MANIFEST_KINDS
};

#define MANIFEST_PODS_MAX 100000 /* of an indexed Job */
#define MANIFEST_PORT 4000

struct manifest { /* all text is borrowed */
    enum manifest_kind kind;
    const char *name, *namespace; /* namespace NULL: that of kubectl */
    const char *image;
    int64_t pods_min, pods_max; /* different, or is_elastic: pods may come and go */
    bool is_elastic;
    int64_t slots, gpus; /* of each pod */
    int64_t grace_s;     /* between SIGTERM and the end of the workers */
    bool has_grace;      /* it is not hvdrun's own */
    const char *secret;  /* to print with them; NULL: the user makes it */
    char *const *line;   /* the program and its arguments, perhaps after options of hvdrun */
};

extern const char *const manifest_kinds[MANIFEST_KINDS]; /* as --kind has them */

/* -1: a name that a cluster would refuse, a text that YAML cannot hold, or what the kind does not
 * have. STATUS_USAGE. The error may have any bytes of the user. */
int manifest_check(const struct manifest *manifest, struct error *err);
void manifest_put(const struct manifest *manifest, struct buf *out); /* it was checked */

/* yaml_text.c: a string of a user as a scalar of YAML 1.1 or 1.2, on one line. */

/* UTF-8, without which there is no scalar. */
bool yaml_text_is_valid(const char *text);

/* Appends the text as it is if every reader of YAML takes it for that string, or else in double
 * quotes. It must be valid. */
void yaml_text_put(const char *text, struct buf *out);

/* kubernetes_cli.c: the command line of `hvdrun kubernetes`. */

struct kube_words {
    struct manifest manifest; /* its secret is NULL */
    bool with_secret, help;
};

/* `words` follow the command's own, and are NULL-ended; the text is borrowed. -1: STATUS_USAGE. */
int kube_words_read(char *const *words, struct kube_words *out, struct error *err);
