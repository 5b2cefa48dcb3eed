/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a line of torchrun, deepspeed or accelerate launch, by the table of options.def.
 * Pure.
 *
 * It reads as Python's argparse does: options up to the script, as --name VALUE, --name=VALUE,
 * -r VALUE or -rVALUE. The last one counts. An option of torchrun that is
 * missing has the value of its variable, PET_NAME.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/strv.h"

enum line_launcher { LINE_TORCHRUN = 1, LINE_DEEPSPEED = 2, LINE_ACCELERATE = 4 };

enum line_field {
    FIELD_NNODES,
    FIELD_NPROC,
    FIELD_PROCESSES,
    FIELD_STANDALONE,
    FIELD_NODE_RANK,
    FIELD_MASTER_ADDR,
    FIELD_MASTER_PORT,
    FIELD_LOCAL_ADDR,
    FIELD_RDZV_BACKEND,
    FIELD_RDZV_ENDPOINT,
    FIELD_RDZV_ID,
    FIELD_RDZV_CONF,
    FIELD_MAX_RESTARTS,
    FIELD_MONITOR,
    FIELD_START_METHOD,
    FIELD_LOG_DIR,
    FIELD_REDIRECTS,
    FIELD_TEE,
    FIELD_FILTER,
    FIELD_MODULE,
    FIELD_NO_PYTHON,
    FIELD_RUN_PATH,
    FIELD_HOSTFILE,
    FIELD_INCLUDE,
    FIELD_EACH_LOG,
    FIELD_NO_LOCAL_RANK,
    FIELD_GPU_IDS,
    FIELD_DYNAMO,
    FIELD_PRECISION,
    LINE_FIELDS
};

struct line_words {
    enum line_launcher who;
    const char *launcher;            /* "torchrun" */
    const char *values[LINE_FIELDS]; /* borrowed; NULL: not given; "1" of a switch */
    char *places[LINE_FIELDS];       /* the option as it was typed, or the variable */
    struct strv direct;              /* of LINE_WORDS */
    struct strv wrong;               /* mistakes, a line each */
    struct strv unknown;             /* options that the launcher does not have */
    size_t refused;                  /* so many of `wrong` are options that hvdrun cannot honour */
    struct strv kept;                /* the line without these */
    char *const *program;            /* the script and its arguments, borrowed; may be empty */
    bool help;
};

/* `words` begin with the launcher's name; both are NULL-ended and outlive `out`. */
void line_words_read(char *const *words, char *const *envp, struct line_words *out);
void line_words_destroy(struct line_words *line);

/* Appends the options of the launcher, and what becomes of each. */
void line_words_help(const struct line_words *line, struct buf *out);

/* Adds a mistake: "PLACE VALUE: what was expected". */
void line_words_expect(struct line_words *line, enum line_field field, const char *expected);
