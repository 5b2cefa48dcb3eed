/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of docs/coming-from.md: what becomes of the options of other launchers. */
#include <string.h>

#include "cli/docgen.h"
#include "cli/foreign.h"

struct cell {
    struct buf *out;
    const char *between;
};

static int put_word(void *context, const char *word, size_t length)
{
    struct cell *cell = context;
    buf_printf(cell->out, "%s%.*s", cell->between, (int)length, word);
    cell->between = ", ";
    return 0;
}

/* "`-ppn, -perhost N`", or "`-K, --kill-on-bad-exit[=1]`" */
static void put_words(const struct foreign *foreign, struct buf *out)
{
    bool blank = foreign->arg[0] != '\0' && foreign->arg[0] != '[';
    struct cell cell = {out, "`"};
    foreign_each_word(foreign, put_word, &cell);
    buf_printf(out, "%s%s`", blank ? " " : "", foreign->arg);
}

/* "; accepted without effect: `1`, `1:1`" */
static void put_idle(const struct foreign *foreign, struct buf *out)
{
    const char *between = "; accepted without effect: `";
    for (const char *at = foreign->idle; *at != '\0';) {
        size_t length = strcspn(at, " ");
        buf_printf(out, "%s%.*s`", between, (int)length, at);
        between = ", `";
        at += length + (at[length] == ' ');
    }
}

static void put_setting(const struct foreign *foreign, struct buf *out)
{
    static const char *const none[2] = {NULL, NULL};
    struct buf value AUTO_BUF = BUF_INIT(1024);
    char name[OPTION_NAME_MAX];
    foreign_fill(foreign, foreign->value, none, &value);
    bool no = strcmp(buf_text(&value), "no") == 0, yes = strcmp(buf_text(&value), "yes") == 0;
    const char *shown = foreign->id == OPT_env ? "x" : option_name(foreign->id, name);
    const char *dashes = foreign->id == OPT_env || foreign->id == OPT_np ? "-" : "--";
    bool is_switch = option_is_switch(foreign->id) && (no || yes);
    bool quote = strpbrk(buf_text(&value), " <>") != NULL;
    const char *mark = quote ? "'" : "";
    buf_printf(out, "the same as `%s%s%s", dashes, no ? "no-" : "", shown);
    if (!is_switch)
        buf_printf(out, " %s%s%s", mark, buf_text(&value), mark);
    buf_putc(out, '`');
    if (foreign->text[0] != '\0')
        buf_printf(out, ". %s", foreign->text);
    else if (foreign->idle[0] != '\0')
        put_idle(foreign, out);
}

static void put_row(const struct foreign *foreign, struct buf *out)
{
    static const char *const none[2] = {NULL, NULL};
    buf_puts(out, "| ");
    put_words(foreign, out);
    buf_puts(out, " | ");
    switch (foreign->kind) {
    case FOREIGN_SETS: put_setting(foreign, out); break;
    case FOREIGN_DONE: buf_printf(out, "accepted without effect: %s", foreign->text); break;
    case FOREIGN_DROP: buf_printf(out, "accepted, with a notice: %s", foreign->text); break;
    case FOREIGN_HINT:
    case FOREIGN_PROGRAM:
        foreign_fill(foreign, foreign->text, none, out);
        put_idle(foreign, out);
        break;
    case FOREIGN_OTHER: buf_printf(out, "another meaning in hvdrun: %s", foreign->text); break;
    case FOREIGN_SAME: break;
    }
    buf_puts(out, " |\n");
}

static void put_same(unsigned launcher, struct buf *out)
{
    const char *between = "";
    const struct foreign *foreign = foreign_at(0);
    for (size_t i = 0; foreign != NULL; foreign = foreign_at(++i)) {
        if (foreign->kind != FOREIGN_SAME || (foreign->launchers & launcher) == 0)
            continue;
        buf_puts(out, between[0] == '\0' ? "These options mean the same in hvdrun:\n" : between);
        put_words(foreign, out);
        between = ",\n";
    }
    if (between[0] != '\0')
        buf_puts(out, ".\n\n");
}

static void put_launcher(unsigned launcher, const char *title, const char *name, struct buf *out)
{
    buf_printf(out, "\n## Options of %s\n\n", title);
    put_same(launcher, out);
    buf_printf(out, "| %s | hvdrun |\n|---|---|\n", name);
    const struct foreign *foreign = foreign_at(0);
    for (size_t i = 0; foreign != NULL; foreign = foreign_at(++i)) {
        if (foreign->kind != FOREIGN_SAME && (foreign->launchers & launcher) != 0)
            put_row(foreign, out);
    }
}

/* option.def has these. */
static void put_horovodrun(struct buf *out)
{
    buf_puts(out, "\n## Options of horovodrun\n\n"
                  "hvdrun accepts all options of horovodrun 0.28.\n"
                  "It ignores these, and prints a warning:\n\n"
                  "| horovodrun | hvdrun |\n|---|---|\n");
    for (int i = 0; i < OPT_TOTAL; i++) {
        char name[OPTION_NAME_MAX];
        const struct option_info *info = option_info((enum option_id)i);
        if ((info->flags & FLAG_FOREIGN) != 0)
            buf_printf(out, "| `--%s%s%s` | %s |\n", option_name((enum option_id)i, name),
                       info->arg[0] == '\0' ? "" : " ", info->arg, info->help);
    }
}

void docgen_coming_from(struct buf *out)
{
    buf_puts(out, "<!-- Generated from here on, from launcher/cli/foreign.def and option.def by "
                  "`hvdrun-docgen coming-from`: change it there. -->\n");
    put_horovodrun(out);
    put_launcher(MPIRUN, "mpirun (Open MPI)", "mpirun", out);
    put_launcher(MPIEXEC, "mpiexec (MPICH)", "mpiexec", out);
    put_launcher(SRUN, "srun (Slurm)", "srun", out);
    put_launcher(TORCHRUN, "torchrun (PyTorch)", "torchrun", out);
    put_launcher(DEEPSPEED, "deepspeed (DeepSpeed)", "deepspeed", out);
    put_launcher(ACCELERATE, "accelerate launch (Accelerate)", "accelerate", out);
}
