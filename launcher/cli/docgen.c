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
    buf_puts(out,
             "<!-- Generated from launcher/model/settings/option.def by `hvdrun-docgen table`: "
             "change it "
             "there. -->\n"
             "# Options of hvdrun\n\n"
             "Precedence, lowest first: built-in defaults, your `config.ini`, `--config-file`, "
             "`HVDRUN_*` variables, flags.\n"
             "Your `config.ini` is in `hvdrun/` below `$XDG_CONFIG_HOME`, or else `~/.config`.\n\n"
             "The variable of `--ssh-port` is `HVDRUN_SSH_PORT`, and so on; `--detach` and "
             "`--dry-run` have none.\n"
             "hvdrun warns about an `HVDRUN_` variable that is not an option; an empty one counts "
             "as unset.\n"
             "Workers do not get these variables, unless you pass one on with "
             "`-x HVDRUN_TIMEOUT`.\n\n"
             "In an INI file, the key is the long name, as in `num-proc` or `num_proc`, in the "
             "section below.\n"
             "The section `[env]` holds variables for the workers.\n"
             "A comment begins with `#` or `;` at the start of a line, or with `;` after a "
             "space.\n"
             "Quotes around a whole value keep its blanks and semicolons: `label = \"%r> \"`.\n"
             "A wrong key or value is an error that names the file and the line.\n\n"
             "`hvdrun --show-config` prints each value and where it comes from, and starts "
             "nothing.\n"
             "It masks passwords in URLs, and variables whose names look like secrets:\n\n"
             "```console\n"
             "$ HVDRUN_TIMEOUT=2h hvdrun --config-file examples/config.ini -x API_TOKEN=1234 "
             "--show-config | grep -E '^(np|timeout|env|quiet) ' | tr -s ' '\n"
             "np 2 examples/config.ini:8\n"
             "env OMP_NUM_THREADS=1 examples/config.ini:23\n"
             "env API_TOKEN=*** command line -x\n"
             "quiet no default\n"
             "timeout 7200 variable HVDRUN_TIMEOUT\n"
             "```\n\n"
             "Times are in seconds, or numbers with a unit: `250ms`, `30s`, `5m`, `2h`, `1d`.\n"
             "Switches take `yes` or `no` in files and variables.\n"
             "[Coming from](coming-from.md) has the options of other launchers.\n");
    for (int i = 0; i < GROUP_TOTAL; i++) {
        if (i != GROUP_FOREIGN) /* docs/coming-from.md has them */
            put_group_table((enum option_group)i, out);
    }
    put_other_names(out);
}
