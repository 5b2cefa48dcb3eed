/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of options as data: what exists, how it is spelled, what it accepts. Pure.
 *
 * model/settings/settings.def is the only list. This file turns it into `enum option_id` and a
 * table that the parser, the help, the configuration readers and the documentation read;
 * model/settings/settings.h turns it into one typed field per option.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/binding/binding.h"
#include "model/exit/policy.h"
#include "model/plan/app.h"

/* Values of the ENUM options; the words are what users type. */
#define COLOR_WORDS(X)            \
    X(SET_COLOR_AUTO, "auto")     \
    X(SET_COLOR_ALWAYS, "always") \
    X(SET_COLOR_NEVER, "never")
#define DRY_RUN_WORDS(X)          \
    X(SET_DRY_RUN_NO, "no")       \
    X(SET_DRY_RUN_TABLE, "table") \
    X(SET_DRY_RUN_JSON, "json")
#define TRANSPORT_WORDS(X)              \
    X(SET_TRANSPORT_AUTO, "auto")       \
    X(SET_TRANSPORT_LOCAL, "local")     \
    X(SET_TRANSPORT_SSH, "ssh")         \
    X(SET_TRANSPORT_SSH_CLI, "ssh-cli") \
    X(SET_TRANSPORT_SRUN, "srun")       \
    X(SET_TRANSPORT_KUBECTL, "kubectl") \
    X(SET_TRANSPORT_DOCKER, "docker")
#define SCHEDULER_WORDS(X)                    \
    X(SET_SCHEDULER_AUTO, "auto")             \
    X(SET_SCHEDULER_SLURM, "slurm")           \
    X(SET_SCHEDULER_PBS, "pbs")               \
    X(SET_SCHEDULER_LSF, "lsf")               \
    X(SET_SCHEDULER_SGE, "sge")               \
    X(SET_SCHEDULER_KUBERNETES, "kubernetes") \
    X(SET_SCHEDULER_NONE, "none")
#define CONTROLLER_WORDS(X)        \
    X(SET_CONTROLLER_AUTO, "auto") \
    X(SET_CONTROLLER_GLOO, "gloo") \
    X(SET_CONTROLLER_MPI, "mpi")
#define ON_FAILURE_WORDS(X)              \
    X(SET_ON_FAILURE_AUTO, "auto")       \
    X(SET_ON_FAILURE_REJOIN, "rejoin")   \
    X(SET_ON_FAILURE_RESTART, "restart") \
    X(SET_ON_FAILURE_STOP, "stop")
#define LOG_LEVEL_WORDS(X)        \
    X(SET_LOG_TRACE, "TRACE")     \
    X(SET_LOG_DEBUG, "DEBUG")     \
    X(SET_LOG_INFO, "INFO")       \
    X(SET_LOG_WARNING, "WARNING") \
    X(SET_LOG_ERROR, "ERROR")     \
    X(SET_LOG_FATAL, "FATAL")

#define WORD_ENUM(id, text) id,
enum set_color { COLOR_WORDS(WORD_ENUM) };
enum set_dry_run { DRY_RUN_WORDS(WORD_ENUM) };
enum set_transport { TRANSPORT_WORDS(WORD_ENUM) };
enum set_scheduler { SCHEDULER_WORDS(WORD_ENUM) };
enum set_controller { CONTROLLER_WORDS(WORD_ENUM) };
enum set_on_failure { ON_FAILURE_WORDS(WORD_ENUM) };
enum set_log_level { LOG_LEVEL_WORDS(WORD_ENUM) };
#undef WORD_ENUM

/* The type of an option, its C type in struct settings, and its value while it is unset. */
enum option_type {
    OPTION_STRING,   /* char *, owned; NULL unset */
    OPTION_TEMPLATE, /* char *, owned: text with %-letters from `accepts` */
    OPTION_RANKS,    /* char *, owned: a list of ranks ("0,4-7"), checked; NULL unset */
    OPTION_INT,      /* int64_t */
    OPTION_DOUBLE,   /* double */
    OPTION_COUNT,    /* int64_t: how often the flag was given, or a number */
    OPTION_BOOL,     /* bool */
    OPTION_TRISTATE, /* int: -1 unset, 0, 1 */
    OPTION_DURATION, /* int64_t, milliseconds */
    OPTION_RANGE,    /* struct duration_range, milliseconds */
    OPTION_RANK,     /* int64_t: a rank, or SET_RANK_NONE, SET_RANK_ALL */
    OPTION_ENUM,     /* int: index of the word */
    OPTION_LIST,     /* struct strv: may be given several times */
};

enum option_group {
#define GROUP(id, title, section) id,
#include "model/settings/settings.def"
    GROUP_TOTAL
};

enum option_id {
#define OPTION(name, type, initial, accepts, spellings, arg, group, flags, yaml, help) OPT_##name,
#include "model/settings/settings.def"
    OPT_TOTAL
};

enum option_flag {
    FLAG_NO = 1,       /* --no-NAME exists too */
    FLAG_CLI = 2,      /* command line only: neither configuration file nor environment */
    FLAG_COMMA = 4,    /* LIST: one value may be several, separated by commas */
    FLAG_APPEND = 8,   /* LIST: a source adds to what earlier ones gave instead of replacing it */
    FLAG_APP = 16,     /* may be given again after a ':' for one program */
    FLAG_FOREIGN = 32, /* of other launchers: accepted, ignored, one warning */
    FLAG_FILE = 64,    /* the value is a path of a file (completion) */
    FLAG_DIR = 128,    /* the value is a path of a folder (completion) */
    FLAG_EQUALS = 256, /* a value only as --NAME=VALUE; the bare form is a FIXED entry */
    FLAG_HOSTS = 512,  /* where the hosts come from: of those given by one source only one */
};

struct option_info {
    const char *field; /* name of the field, "fusion_threshold_mb" */
    enum option_type type;
    const char *accepts;   /* INT, DOUBLE, DURATION: "min:max"; ENUM, RANK: "word|word|"; or NULL */
    const char *spellings; /* further spellings, separated by spaces, dashes included; "" */
    const char *arg;       /* what the help calls the value; "" for switches */
    enum option_group group;
    unsigned flags;   /* enum option_flag */
    const char *yaml; /* "section.key" in horovodrun's YAML, NULL when it has none */
    const char *help;
};

const struct option_info *option_info(enum option_id id);
const char *option_group_title(enum option_group group);
const char *option_group_section(enum option_group group); /* INI section, NULL: none */

#define OPTION_NAME_MAX 64
/* The name with dashes, without the leading ones: "fusion-threshold-mb". Returns `out`. */
const char *option_name(enum option_id id, char out[OPTION_NAME_MAX]);
/* The environment variable of the option: "HVDRUN_FUSION_THRESHOLD_MB". Returns `out`. */
const char *option_variable(enum option_id id, char out[OPTION_NAME_MAX]);

bool option_is_switch(enum option_id id); /* takes no value of its own */

/* The words of an ENUM or RANK option. option_word() copies number `index` to `out` and returns 0,
 * or -1 past the end; option_word_index() is the way back (-1: no such word; case does not count).
 */
int option_word(enum option_id id, int index, char out[OPTION_NAME_MAX]);
int option_word_index(enum option_id id, const char *word);

/* Calls `each` for every further spelling ("-np"), in order, until it returns other than 0. */
int option_each_spelling(enum option_id id, int (*each)(void *context, const char *spelling),
                         void *context);

/* A spelling that sets an option to a fixed value: "--gloo" is "--controller gloo". */
struct option_fixed {
    enum option_id id;
    const char *spelling;
    const char *value;
    const char *instead; /* deprecated: what to write now; else NULL */
    const char *help;    /* NULL: not shown of its own */
};
const struct option_fixed *option_fixed(size_t index); /* NULL past the end */

/* A further name of an option in the environment or in horovodrun's YAML. */
struct option_other_name {
    enum option_id id;
    const char *name;
    bool inverted; /* yes there means no here */
};
const struct option_other_name *option_other_variable(size_t index); /* NULL past the end */
const struct option_other_name *option_other_yaml(size_t index);     /* NULL past the end */

/*
 * Names in the environment. The rule that keeps a hvdrun inside a worker of another one apart:
 * an option's variable is never a worker's variable (a test holds the two lists against each
 * other), and the launcher does not hand option variables on to its workers (see
 * option_of_variable()).
 */
/* The option that this environment name sets (also by a further name), OPT_TOTAL: none. */
enum option_id option_of_variable(const char *name, size_t length);
/* A HVDRUN_ name that is no option but belongs to a worker, an agent or the tests. */
bool option_variable_is_reserved(const char *name, size_t length);
