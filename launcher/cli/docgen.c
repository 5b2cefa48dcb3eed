/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docgen.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cli/describe.h"
#include "cli/docgen_parts.h"
#include "model/settings/option.h"

docgen_function *docgen_find(const char *name)
{
    static const struct {
        const char *name;
        docgen_function *function;
    } known[] = {
        {"man", docgen_man},   {"table", docgen_table}, {"coming-from", docgen_coming_from},
        {"bash", docgen_bash}, {"zsh", docgen_zsh},     {"fish", docgen_fish},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].name, name) == 0)
            return known[i].function;
    }
    return NULL;
}

/* Appends text for a cell of a table: a bar would end the cell, and a < would begin HTML. */
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
                  "hvdrun also reads these names.\nThe names above override them.\n\n");
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
    buf_puts(out,
             "<!-- Generated from launcher/model/settings/option.def by `hvdrun-docgen table`: "
             "change it "
             "there. -->\n"
             "# Options of hvdrun\n\n"
             "Precedence, lowest first: built-in defaults, your `config.ini`, `--config-file`, "
             "`HVDRUN_*` variables, flags.\n"
             "Your `config.ini` is `~/.config/hvdrun/config.ini`, or `hvdrun/config.ini` below "
             "`$XDG_CONFIG_HOME`.\n\n"
             "In an INI file, the key is the option's long name: `np`, `num-proc` or `num_proc`.\n"
             "The tables below name the section of each option.\n"
             "The section `[env]` holds variables for the workers.\n"
             "A comment begins with `#` or `;` at the start of a line, or with `;` after a "
             "space.\n"
             "If quotes enclose a whole value, hvdrun removes them and keeps the blanks and "
             "semicolons inside: `label = \"%r> \"`.\n"
             "A wrong key or value is an error that names the file and the line.\n\n"
             "`hvdrun --show-config` prints the value of each option and where it comes from, and "
             "starts nothing.\n"
             "It masks passwords in URLs, and the values of variables whose names look like "
             "secrets:\n\n"
             "```console\n"
             "$ HVDRUN_TIMEOUT=2h hvdrun --config-file examples/config.ini -x API_TOKEN=1234 "
             "--show-config | grep -E '^(np|timeout|env|quiet) ' | tr -s ' '\n"
             "np 2 examples/config.ini:8\n"
             "env OMP_NUM_THREADS=1 examples/config.ini:23\n"
             "env API_TOKEN=*** command line -x\n"
             "quiet no default\n"
             "timeout 7200 variable HVDRUN_TIMEOUT\n"
             "```\n\n"
             "hvdrun warns about an `HVDRUN_` variable that is not an option.\n"
             "An empty variable counts as unset.\n\n"
             "Times are in seconds, or numbers with a unit: `250ms`, `30s`, `5m`, `2h`, `1d`.\n"
             "Switches take `yes` or `no` in files and variables.\n\n"
             "If a worker runs hvdrun itself, that hvdrun does not inherit these options:\n\n"
             "- Workers do not get the `HVDRUN_` variables of options, unless you pass one on with "
             "`-x HVDRUN_TIMEOUT`.\n"
             "- A variable that hvdrun sets for workers never has the name of an option.\n\n"
             "For the options of other launchers, see [coming from](coming-from.md).\n");
    for (int i = 0; i < GROUP_TOTAL; i++)
        put_group_table((enum option_group)i, out);
    put_other_names(out);
}
