/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of torchrun, deepspeed or accelerate launch as options and a program of hvdrun. Pure.
 *
 * An option that has the same value in hvdrun without it is left out. So a line that says little
 * becomes a short one.
 */
#pragma once

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "features/torchrun/line_words.h"
#include "model/settings/line.h"

#define LINE_TEXT_MAX ((size_t)1 << 20)

struct line_machine {
    const char *stamp;                  /* makes the name of a log folder unique */
    bool (*has_file)(const char *path); /* is there such a file? */
};

/* As line_translate. */
int translate_line(char *const *words, char *const *envp, const struct line_machine *machine,
                   struct line *out, struct error *err);

/*
 * What this copy of hvdrun is, when its line names a number of hosts.
 *
 * torchrun is started on each host, and its copies meet at an address. hvdrun can be started once,
 * with all hosts. If it knows fewer hosts than the line wants, and the line has that address, it is
 * one of several copies (torchrun_cli.c).
 */
enum role {
    ROLE_ALONE,  /* the hosts that it knows are all: an ordinary job */
    ROLE_DRIVER, /* the other copies come to this one, at nodes->meeting_port */
    ROLE_DIAL,   /* it goes to the one at nodes->meeting_host */
    ROLE_WRONG,  /* there are too few hosts, and nothing says where the others are */
};

/* `hosts`: how many it knows. `meets_here`: the meeting address is one of this machine. */
enum role role_of(const struct line_nodes *nodes, size_t hosts, bool meets_here);

/* What the files share that translate a line: its words, and the line of hvdrun that comes out. */
struct translation {
    struct line_words in;
    char *const *envp;
    const struct line_machine *machine;
    struct line *out;
    int64_t nproc; /* 0: it is not a number */
};

static inline const char *line_value(const struct translation *t, enum line_field field)
{
    return t->in.values[field];
}

static inline bool line_has(const struct translation *t, enum line_field field)
{
    return line_value(t, field) != NULL;
}

static inline void line_put(struct translation *t, const char *option, const char *value)
{
    strv_add(&t->out->words, option);
    if (value != NULL)
        strv_add(&t->out->words, value);
}

__attribute__((format(printf, 3, 4))) static inline void
line_putf(struct translation *t, const char *option, const char *format, ...)
{
    va_list args;
    struct buf text AUTO_BUF = BUF_INIT(LINE_TEXT_MAX);
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    line_put(t, option, buf_text(&text));
}

/* The word as the list has it, whatever its case. NULL: it is not there. */
static inline const char *line_known(const char *word, const char *const *list)
{
    while (*list != NULL && strcasecmp(word, *list) != 0)
        list++;
    return *list;
}

/* `missing`: it is not set, or empty. */
static inline const char *line_variable(char *const *envp, const char *name, const char *missing)
{
    const char *value = env_value(envp, name);
    return value == NULL || *value == '\0' ? missing : value;
}

/* What only DeepSpeed and Accelerate have. */

/* --include HOST:0,1@HOST:0,1, if all hosts have the same devices, or none of them is named; or
 * else the hostfile. */
void deepspeed_hosts(struct translation *t);

/* The variables that Accelerate's launcher always sets. */
void accelerate_variables(struct translation *t);
