/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of the manual page, with only those man macros that both groff and mandoc understand.
 */
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/status.h"
#include "cli/first_word.h"
#include "cli/spelling.h"
#include "cli/texts.h"
#include "model/settings/option.h"

/* Appends text for troff, so that no character of it is a command. */
static void put_text(const char *text, struct buf *out)
{
    if (*text == '.' || *text == '\'')
        buf_puts(out, "\\&");
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '\\': buf_puts(out, "\\e"); break;
        case '-': buf_puts(out, "\\-"); break;
        case '\'': buf_puts(out, "\\(aq"); break;
        case '^': buf_puts(out, "\\(ha"); break;
        case '~': buf_puts(out, "\\(ti"); break;
        case '`': buf_puts(out, "\\(ga"); break;
        default: buf_putc(out, *text);
        }
    }
}

static void put_line(const char *text, struct buf *out)
{
    put_text(text, out);
    buf_putc(out, '\n');
}

static void put_item(const char *head, struct buf *out)
{
    buf_puts(out, ".TP\n\\fB");
    put_text(head, out);
    buf_puts(out, "\\fR\n");
}

static void put_check_operands(struct buf *out)
{
    put_text(CHECK_OPERANDS, out);
}

static void put_check(struct buf *out)
{
    for (const struct control_option_form *own = check_options; own->word != NULL; own++) {
        buf_puts(out, ".TP\n\\fB");
        put_text(own->word, out);
        buf_printf(out, own->value[0] == '\0' ? "\\fR%s\n" : "\\fR \\fI%s\\fR\n", own->value);
        buf_printf(out, "%s.\n", own->help);
    }
}

static void put_tools(struct buf *out)
{
    for (const struct control_form *tool = tool_forms; tool->word != NULL; tool++) {
        buf_printf(out, ".TP\n\\fB%s\\fR ", tool->word);
        put_text(tool->operands, out);
        buf_printf(out, "\n%s; see \\fBhvdrun %s \\-\\-help\\fR.\n", tool->help, tool->word);
    }
}

/* The options of this command alone. */
static void put_command_options(int command, struct buf *out)
{
    for (int i = 0; i < CONTROL_OPTION_JSON; i++) {
        const struct control_option_form *option = &control_option_forms[i];
        if (!control_takes_option((enum control_command)command, (enum control_option)i))
            continue;
        buf_puts(out, ".br\n");
        put_text(option->word, out);
        if (option->letter[0] != '\0')
            buf_printf(out, " (\\-%s)", option->letter + 1);
        buf_puts(out, ": ");
        put_text(option->help, out);
        buf_puts(out, ".\n");
    }
}

static void put_commands(struct buf *out)
{
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        struct buf usage AUTO_BUF = BUF_INIT(512);
        control_put_usage((enum control_command)i, &usage);
        size_t length = strlen(control_forms[i].word);
        buf_printf(out, ".TP\n\\fB%s\\fR", control_forms[i].word);
        put_line(buf_text(&usage) + length, out);
        put_text(control_forms[i].help, out);
        buf_puts(out, ".\n");
        put_command_options(i, out);
    }
}

static void put_option(enum option_id id, struct buf *out)
{
    struct buf head AUTO_BUF = BUF_INIT(256), text AUTO_BUF = BUF_INIT(1024);
    describe_spellings(id, true, &head);
    describe_help(id, &text);
    put_item(buf_text(&head), out);
    buf_putc(&text, '.');
    put_line(buf_text(&text), out);
    const struct option_fixed *fixed = option_fixed(0);
    for (size_t i = 0; fixed != NULL; fixed = option_fixed(++i)) {
        if (fixed->id != id || fixed->help == NULL)
            continue;
        put_item(fixed->spelling, out);
        put_line(fixed->help, out);
    }
}

static void put_options(struct buf *out)
{
    for (int group = 0; group < GROUP_TOTAL; group++) {
        buf_printf(out, ".SS \"%s\"\n", option_group_title((enum option_group)group));
        for (int i = 0; i < OPT_TOTAL; i++) {
            if (option_info((enum option_id)i)->group == (enum option_group)group)
                put_option((enum option_id)i, out);
        }
    }
}

static bool has_keys(enum option_group group)
{
    return option_group_section(group) != NULL && group != GROUP_FOREIGN;
}

static bool same_section(enum option_group a, enum option_group b)
{
    return has_keys(a) && has_keys(b) &&
           strcmp(option_group_section(a), option_group_section(b)) == 0;
}

/* Several groups of options can share a section. */
static bool is_first_of_section(enum option_group group)
{
    for (int i = 0; i < (int)group; i++) {
        if (same_section((enum option_group)i, group))
            return false;
    }
    return has_keys(group);
}

static void put_section(enum option_group first, struct buf *out)
{
    buf_printf(out, ".TP\n\\fB[%s]\\fR\n", option_group_section(first));
    for (int i = (int)first; i < GROUP_TOTAL; i++) {
        if (same_section((enum option_group)i, first))
            buf_printf(out, "%s.\n", option_group_title((enum option_group)i));
    }
}

static void put_sections(struct buf *out)
{
    for (int i = 0; i < GROUP_TOTAL; i++) {
        if (is_first_of_section((enum option_group)i))
            put_section((enum option_group)i, out);
    }
}

static void put_variables(struct buf *out)
{
    const struct option_other_name *other = option_other_variable(0);
    for (size_t i = 0; other != NULL; other = option_other_variable(++i)) {
        char name[OPTION_NAME_MAX], variable[OPTION_NAME_MAX];
        put_item(other->name, out);
        buf_printf(out, "Another name, which \\fB%s\\fR overrides (option \\fB\\-\\-",
                   option_variable(other->id, variable));
        put_text(option_name(other->id, name), out);
        buf_puts(out, "\\fR).\n");
    }
}

static void put_statuses(struct buf *out)
{
    static const struct {
        int value;
        const char *text;
    } statuses[] = {
#define STATUS_ROW(name, number, meaning) {number, meaning},
        STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
    };
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        buf_printf(out, ".TP\n\\fB%d\\fR\n", statuses[i].value);
        put_text(statuses[i].text, out);
        buf_puts(out, ".\n");
    }
}

const struct docgen_mark docgen_man_marks[] = {
    {.name = "version", .text = HVDRUN_VERSION},
    {.name = "job", .text = CONTROL_JOB},
    {.name = "check-help", .text = CHECK_HELP},
    {.name = "check-operands", .lines = put_check_operands},
    {.name = "man-check", .lines = put_check},
    {.name = "man-tools", .lines = put_tools},
    {.name = "man-commands", .lines = put_commands},
    {.name = "man-options", .lines = put_options},
    {.name = "man-sections", .lines = put_sections},
    {.name = "man-variables", .lines = put_variables},
    {.name = "man-statuses", .lines = put_statuses},
    {.name = NULL},
};
