/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docgen.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cli/describe.h"
#include "model/settings/option.h"

docgen_function *docgen_find(const char *name)
{
    static const struct {
        const char *name;
        docgen_function *function;
    } known[] = {
        {"man", docgen_man}, {"table", docgen_table}, {"bash", docgen_bash},
        {"zsh", docgen_zsh}, {"fish", docgen_fish},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].name, name) == 0)
            return known[i].function;
    }
    return NULL;
}

/* A table's cell: a bar would end it, and a < would begin HTML. */
static void put_cell(const char *text, bool code, struct buf *out)
{
    if (*text == '\0') {
        buf_puts(out, " |");
        return;
    }
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
    struct buf cell AUTO_BUF = BUF_INIT(1024);
    char variable[OPTION_NAME_MAX];
    bool open = (info->flags & FLAG_CLI) == 0;
    buf_putc(out, '|');
    describe_spellings(id, true, &cell);
    put_cell(buf_text(&cell), true, out);
    buf_clear(&cell);
    describe_words(id, ", ", &cell);
    put_cell(buf_text(&cell), false, out);
    buf_clear(&cell);
    describe_default(id, &cell);
    put_cell(buf_text(&cell), true, out);
    put_cell(open ? option_variable(id, variable) : "", true, out);
    put_cell(info->yaml == NULL ? "" : info->yaml, true, out);
    put_cell(info->help, false, out);
    buf_putc(out, '\n');
}

static void put_fixed_rows(enum option_group group, struct buf *out)
{
    const struct option_fixed *fixed = option_fixed(0);
    for (size_t i = 0; fixed != NULL; fixed = option_fixed(++i)) {
        char name[OPTION_NAME_MAX];
        struct buf cell AUTO_BUF = BUF_INIT(1024);
        if (option_info(fixed->id)->group != group)
            continue;
        buf_putc(out, '|');
        put_cell(fixed->spelling, true, out);
        buf_puts(out, " | | | |");
        buf_printf(&cell, "The same as --%s=%s", option_name(fixed->id, name), fixed->value);
        if (fixed->instead != NULL)
            buf_printf(&cell, "; deprecated, use %s", fixed->instead);
        put_cell(buf_text(&cell), false, out);
        buf_putc(out, '\n');
    }
}

static void put_group_table(enum option_group group, struct buf *out)
{
    const char *section = option_group_section(group);
    buf_printf(out, "\n## %s\n\n", option_group_title(group));
    if (section != NULL && group != GROUP_FOREIGN)
        buf_printf(out, "Section `[%s]` of a configuration file.\n\n", section);
    buf_puts(out, "| Option | Values | Default | Variable | horovodrun's YAML | Meaning |\n"
                  "|---|---|---|---|---|---|\n");
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
                  "Read as well, weaker than the names above:\n\n");
    for (size_t i = 0; other != NULL; other = option_other_variable(++i))
        buf_printf(out, "- the variable `%s` for `--%s`\n", other->name,
                   option_name(other->id, name));
    other = option_other_yaml(0);
    for (size_t i = 0; other != NULL; other = option_other_yaml(++i))
        buf_printf(out, "- in YAML `%s` for `--%s`%s\n", other->name, option_name(other->id, name),
                   other->inverted ? ", turned round" : "");
}

void docgen_table(struct buf *out)
{
    buf_puts(out,
             "<!-- Generated from launcher/model/settings/settings.def by `hvdrun-docgen table`: "
             "change it "
             "there. -->\n"
             "# Options of hvdrun\n\n"
             "Defaults are weaker than `~/.config/hvdrun/config.ini` (`$XDG_CONFIG_HOME` counts), "
             "that is weaker than\n`--config-file`, then come the variables, then the flags. An "
             "INI file has the option's long name\n(`num-proc` or `num_proc` as well as `np`) as "
             "key in the section named below; `[env]` holds variables for\nthe workers. A key or "
             "value that is wrong is an error with file and line, a `HVDRUN_` variable that\nis no "
             "option is a warning. An empty variable counts as unset.\n\n"
             "Times are seconds, or `250ms`, `30s`, `5m`, `2h`, `1d`. Switches take `yes` or `no` "
             "in files and variables.\n\n"
             "A hvdrun that runs inside a worker of another one does not inherit its options: "
             "`HVDRUN_` variables of\noptions are not handed on to workers (`-x HVDRUN_TIMEOUT` "
             "does so on purpose), and no variable that a\nworker gets has the name of an "
             "option.\n");
    for (int i = 0; i < GROUP_TOTAL; i++)
        put_group_table((enum option_group)i, out);
    put_other_names(out);
}
