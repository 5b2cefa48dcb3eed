/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/texts.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/foreign.h"
#include "cli/spelling.h"
#include "model/settings/option.h"

static const struct docgen_mark *find_mark(const char *name, size_t length)
{
    static const struct docgen_mark *const lists[] = {docgen_man_marks, docgen_shell_marks,
                                                      docgen_control_marks};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (const struct docgen_mark *mark = lists[i]; mark->name != NULL; mark++) {
            if (strlen(mark->name) == length && memcmp(mark->name, name, length) == 0)
                return mark;
        }
    }
    return NULL;
}

struct listing {
    const struct docgen_mark *mark;
    const char *between;
    size_t count;
    struct buf *out;
};

static void list_word(struct listing *listing, const char *word)
{
    buf_printf(listing->out, "%s%s", listing->count++ > 0 ? listing->between : "", word);
}

static int list_option(void *context, const struct spelling *spelling)
{
    struct listing *listing = context;
    if (spelling->instead == NULL && listing->mark->option(spelling))
        list_word(listing, spelling->word);
    return 0;
}

static void put_mark(const struct docgen_mark *mark, const char *between, struct buf *out)
{
    struct listing listing = {mark, between, 0, out};
    if (mark->text != NULL)
        buf_puts(out, mark->text);
    else if (mark->lines != NULL)
        mark->lines(out);
    else if (mark->each_spelling != NULL)
        spelling_each(mark->each_spelling, out);
    else if (mark->option != NULL)
        spelling_each(list_option, &listing);
    else if (mark->words != NULL)
        mark->words(between, out);
    for (int i = 0; mark->command != NULL && i < CONTROL_COMMANDS; i++) {
        if (mark->command(i))
            list_word(&listing, control_forms[i].word);
    }
}

/* What is wrong with a mark; NULL: nothing. `rest` is what is behind its name. */
static const char *complaint(const struct docgen_mark *mark, const char *rest)
{
    if (mark == NULL)
        return "no such mark";
    bool is_list = mark->option != NULL || mark->command != NULL || mark->words != NULL;
    const char *close = strstr(rest, "}}");
    if (close == NULL || close > rest + strcspn(rest, "\n"))
        return "there is no }} in its line";
    if (is_list && close == rest)
        return "a list needs what comes between its items";
    return is_list || close == rest ? NULL : "it is not a list, so nothing comes behind its name";
}

static int line_of(const char *text, const char *at)
{
    int line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

int docgen_fill(const char *template, struct buf *out, struct error *err)
{
    const char *at = template + strcspn(template, "\n"), *open;
    for (at += *at == '\n'; (open = strstr(at, "{{")) != NULL;) {
        const char *name = open + 2;
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
        const struct docgen_mark *mark = find_mark(name, length);
        const char *wrong = complaint(mark, name + length);
        if (wrong != NULL)
            return error_set(err, "line %d: {{%.*s: %s", line_of(template, open), (int)length, name,
                             wrong);
        const char *close = strstr(name, "}}");
        char *between AUTO_FREE = mem_strndup(name + length, (size_t)(close - name) - length);
        buf_append(out, at, (size_t)(open - at));
        put_mark(mark, between, out);
        at = close + 2;
        at += *at == '\n' && out->length > 0 && buf_text(out)[out->length - 1] == '\n';
    }
    buf_puts(out, at);
    return 0;
}

/* Appends text for a cell of a table: a bar would end the cell, and a < would begin HTML. */
static void put_cell(const char *text, bool code, struct buf *out)
{
    buf_puts(out, code ? " `" : " ");
    for (; *text != '\0'; text++) {
        if (*text == '|')
            buf_putc(out, '\\');
        if (*text == '<' && !code)
            buf_puts(out, "&lt;");
        else
            buf_putc(out, *text);
    }
    buf_puts(out, code ? "` |" : " |");
}

static void put_row(enum option_id id, struct buf *out)
{
    const struct option_info *info = option_info(id);
    struct buf head AUTO_BUF = BUF_INIT(1024), text AUTO_BUF = BUF_INIT(1024);
    describe_spellings(id, true, &head);
    describe_help(id, &text);
    if (info->yaml != NULL)
        buf_printf(&text, ". YAML: `%s`", info->yaml);
    buf_putc(out, '|');
    put_cell(buf_text(&head), true, out);
    put_cell(buf_text(&text), false, out);
    buf_putc(out, '\n');
}

/* The bare word of --NAME[=VALUE], which the row of the option has. */
static bool is_bare(const struct option_fixed *fixed)
{
    return fixed->help == NULL && fixed->instead == NULL;
}

static void put_fixed_rows(enum option_group group, struct buf *out)
{
    const struct option_fixed *fixed = option_fixed(0);
    for (size_t i = 0; fixed != NULL; fixed = option_fixed(++i)) {
        char name[OPTION_NAME_MAX];
        struct buf cell AUTO_BUF = BUF_INIT(1024);
        if (option_info(fixed->id)->group != group || is_bare(fixed))
            continue;
        buf_putc(out, '|');
        put_cell(fixed->spelling, true, out);
        if (fixed->instead != NULL)
            buf_printf(&cell, "Deprecated: use %s", fixed->instead);
        else
            buf_printf(&cell, "The same as --%s=%s", option_name(fixed->id, name), fixed->value);
        put_cell(buf_text(&cell), false, out);
        buf_putc(out, '\n');
    }
}

static void put_group_table(enum option_group group, struct buf *out)
{
    const char *section = option_group_section(group);
    buf_printf(out, "\n## %s\n\n", option_group_title(group));
    if (section != NULL)
        buf_printf(out, "Section `[%s]`.\n\n", section);
    buf_puts(out, "| option | meaning |\n|---|---|\n");
    for (int i = 0; i < OPT_TOTAL; i++) {
        if (option_info((enum option_id)i)->group == group)
            put_row((enum option_id)i, out);
    }
    put_fixed_rows(group, out);
}

static void put_other_names(struct buf *out)
{
    char name[OPTION_NAME_MAX];
    const struct option_other_name *other = option_other_variable(0);
    buf_puts(out, "\n## Further names\n\n"
                  "hvdrun also reads these, which the names above override:\n\n");
    for (size_t i = 0; other != NULL; other = option_other_variable(++i))
        buf_printf(out, "- the variable `%s` for `--%s`\n", other->name,
                   option_name(other->id, name));
    other = option_other_yaml(0);
    for (size_t i = 0; other != NULL; other = option_other_yaml(++i))
        buf_printf(out, "- in YAML `%s` for `--%s`%s\n", other->name, option_name(other->id, name),
                   other->inverted ? ", with the opposite value" : "");
}

void docgen_table(struct buf *out)
{
    buf_puts(out, "<!-- Generated from here on, from launcher/model/settings/option.def by "
                  "`hvdrun-docgen table`: change it there. -->\n");
    for (int i = 0; i < GROUP_TOTAL; i++) {
        if (i != GROUP_FOREIGN) /* docs/coming-from.md has them */
            put_group_table((enum option_group)i, out);
    }
    put_other_names(out);
}

/* The tables of docs/coming-from.md: what becomes of the options of other launchers. */

/* "`-ppn, -perhost N`", or "`-K, --kill-on-bad-exit[=1]`". "-host" is left out if "--host" is
 * there: whoever looks for it finds it inside the longer one. */
static void put_words(const struct foreign *foreign, struct buf *out)
{
    bool blank = foreign->arg[0] != '\0' && foreign->arg[0] != '[';
    const char *between = "`";
    for (const char *at = foreign->words; *at != '\0'; at = text_behind(at, ' ')) {
        int length = (int)strcspn(at, " ");
        char *longer AUTO_FREE = mem_printf("-%.*s", length, at);
        if (text_lists(foreign->words, longer, strlen(longer)))
            continue;
        buf_printf(out, "%s%.*s", between, length, at);
        between = ", ";
    }
    buf_printf(out, "%s%s`", blank ? " " : "", foreign->arg);
}

/* "; accepted: `1`, `1:1`" */
static void put_idle(const struct foreign *foreign, struct buf *out)
{
    const char *between = "; accepted: `";
    for (const char *at = foreign->idle; *at != '\0'; at = text_behind(at, ' ')) {
        buf_printf(out, "%s%.*s`", between, (int)strcspn(at, " "), at);
        between = ", `";
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
    buf_printf(out, "`%s%s%s", dashes, no ? "no-" : "", shown);
    if (!is_switch)
        buf_printf(out, " %s%s%s", mark, buf_text(&value), mark);
    buf_putc(out, '`');
    if (foreign->text[0] != '\0')
        buf_printf(out, ". %s", foreign->text);
    else if (foreign->idle[0] != '\0')
        put_idle(foreign, out);
}

static void put_foreign_row(const struct foreign *foreign, struct buf *out)
{
    static const char *const none[2] = {NULL, NULL};
    buf_puts(out, "| ");
    put_words(foreign, out);
    buf_puts(out, " | ");
    switch (foreign->kind) {
    case FOREIGN_SETS: put_setting(foreign, out); break;
    case FOREIGN_DROP: buf_printf(out, "ignored: %s", foreign->text); break;
    case FOREIGN_HINT:
    case FOREIGN_LINE:
    case FOREIGN_PROGRAM:
        foreign_fill(foreign, foreign->text, none, out);
        put_idle(foreign, out);
        break;
    case FOREIGN_OTHER: buf_printf(out, "in hvdrun: %s", foreign->text); break;
    case FOREIGN_SAME:
    case FOREIGN_DONE: break;
    }
    buf_puts(out, " |\n");
}

/* A sentence that lists what is of this kind, or nothing. */
static void put_list(enum foreign_kind kind, unsigned launchers, const char *lead, struct buf *out)
{
    const char *between = "";
    for (const struct foreign *foreign = foreign_table; foreign->words != NULL; foreign++) {
        if (foreign->kind != kind || (foreign->launchers & launchers) == 0)
            continue;
        buf_puts(out, between[0] == '\0' ? lead : between);
        put_words(foreign, out);
        between = ",\n";
    }
    if (between[0] != '\0')
        buf_puts(out, ".\n");
}

static void put_launchers(unsigned launchers, const char *title, const char *name, struct buf *out)
{
    buf_printf(out, "\n## Options of %s\n\n", title);
    put_list(FOREIGN_SAME, launchers, "The same in hvdrun:\n", out);
    put_list(FOREIGN_DONE, launchers, "Accepted, without effect:\n", out);
    buf_printf(out, "\n| %s | hvdrun |\n|---|---|\n", name);
    for (const struct foreign *foreign = foreign_table; foreign->words != NULL; foreign++) {
        bool listed = foreign->kind == FOREIGN_SAME || foreign->kind == FOREIGN_DONE;
        if (!listed && (foreign->launchers & launchers) != 0)
            put_foreign_row(foreign, out);
    }
}

/* option.def has these. */
static void put_horovodrun(struct buf *out)
{
    buf_puts(out, "\n## Options of horovodrun\n\n"
                  "hvdrun accepts all options of horovodrun 0.28.\n"
                  "It warns of those that it ignores:\n\n"
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
    put_launchers(MPIRUN | MPIEXEC, "mpirun (Open MPI) and mpiexec (MPICH)", "mpirun, mpiexec",
                  out);
    put_launchers(SRUN, "srun (Slurm)", "srun", out);
    put_launchers(TORCHRUN | DEEPSPEED | ACCELERATE, "torchrun, deepspeed and accelerate launch",
                  "torchrun, deepspeed, accelerate", out);
}
