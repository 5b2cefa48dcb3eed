/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of options as data: what exists, how it is spelled, what it accepts. Pure.
 *
 * model/settings/option.def is the only list. This file turns it into `enum option_id` and a table.
 * The parser, the help, the configuration readers and the documentation read that table.
 * model/settings/settings.h turns the list into one typed field per option.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/settings/words.h"

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
    OPTION_RANK,     /* int64_t: a rank, or SET_RANK_ALL and so on */
    OPTION_ENUM,     /* int: index of the word */
    OPTION_LIST,     /* struct strv: may be given several times */
};

enum option_group {
#define GROUP(id, title, section) id,
#include "model/settings/option.def"
    GROUP_TOTAL
};

enum option_id {
#define OPTION(name, type, initial, accepts, spellings, arg, group, flags, yaml, help) OPT_##name,
#include "model/settings/option.def"
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
    FLAG_WRITES =
        1024,         /* FLAG_FILE: hvdrun writes the file, and looks at the start whether it can */
    FLAG_HOSTS = 512, /* where the hosts come from: of those given by one source only one */
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
 * or -1 past the end. option_word_index() is its inverse, and ignores case (-1: no such word).
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
    const char *help;    /* NULL: the help does not list it */
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
 * Names in the environment. A hvdrun inside a worker of another hvdrun must not read the outer
 * one's variables. So an option's variable is never a worker's variable (a test compares the two
 * lists). Nor does the launcher pass option variables on to its workers (see option_of_variable()).
 */
/* The option that this environment name sets (also by a further name), OPT_TOTAL: none. */
enum option_id option_of_variable(const char *name, size_t length);
/* A HVDRUN_ name that is not an option but belongs to a worker, an agent or the tests. */
bool option_variable_is_reserved(const char *name, size_t length);
