/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "cli/check_words.h"
#include "cli/control_forms.h"
#include "cli/describe.h"
#include "model/settings/option.h"

#define WIDTH 79
#define INDENT 28 /* where the explanations start */

/* Starts a line with the option. The explanation follows on this line, or below if there is no
 * room. */
static size_t put_head(const char *head, struct buf *out)
{
    buf_printf(out, "  %s", head);
    size_t column = strlen(head) + 2;
    if (column + 2 > INDENT) {
        buf_putc(out, '\n');
        column = 0;
    }
    buf_printf(out, "%*s", (int)(INDENT - column), "");
    return INDENT;
}

/* Writes the words of `text` from `column` on, and breaks lines at blanks. */
static void put_wrapped(const char *text, size_t column, struct buf *out)
{
    bool fresh = true;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (!fresh && column + 1 + length > WIDTH) {
            buf_printf(out, "\n%*s", INDENT, "");
            column = INDENT;
            fresh = true;
        }
        buf_printf(out, "%s%.*s", fresh ? "" : " ", (int)length, text);
        column += length + (fresh ? 0 : 1);
        fresh = false;
        text += length;
        text += strspn(text, " ");
    }
    buf_putc(out, '\n');
}

static void put_option(enum option_id id, struct buf *out)
{
    struct buf head AUTO_BUF = BUF_INIT(256), text AUTO_BUF = BUF_INIT(1024);
    describe_spellings(id, false, &head);
    describe_help(id, &text);
    put_wrapped(buf_text(&text), put_head(buf_text(&head), out), out);
    const struct option_fixed *fixed = option_fixed(0);
    for (size_t i = 0; fixed != NULL; fixed = option_fixed(++i)) {
        if (fixed->id == id && fixed->help != NULL)
            put_wrapped(fixed->help, put_head(fixed->spelling, out), out);
    }
}

static void put_group(enum option_group group, struct buf *out)
{
    const char *section = option_group_section(group);
    bool foreign = group == GROUP_FOREIGN;
    buf_printf(out, "\n%s", option_group_title(group));
    if (section != NULL && !foreign)
        buf_printf(out, "  [%s]", section);
    buf_putc(out, '\n');
    for (int i = 0; i < OPT_TOTAL; i++) {
        if (option_info((enum option_id)i)->group == group)
            put_option((enum option_id)i, out);
    }
}

static void put_commands(struct buf *out)
{
    buf_puts(out, "\nCheck of the hosts, without a job (hvdrun check --help)\n");
    put_wrapped(CHECK_HELP, put_head(CHECK_WORD " " CHECK_OPERANDS, out), out);
    buf_puts(out, "\nCommands for your jobs (hvdrun status --help)\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        const struct control_form *form = &control_forms[i];
        char *head AUTO_FREE = mem_printf("%s %s", form->word, form->operands);
        put_wrapped(form->help, put_head(head, out), out);
    }
}

void help_text(struct buf *out)
{
    buf_puts(out, "Usage: hvdrun [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM ...]\n"
                  "       hvdrun COMMAND [OPERANDS]\n"
                  "Starts, watches and ends the workers of one distributed job.\n\n"
                  "  hvdrun -np 4 python train.py        four workers on this machine\n"
                  "  hvdrun -np 1 ./a : -np 3 ./b        two programs, one job\n"
                  "  hvdrun -np 8 -H a:4,b:4 --dry-run ./train\n"
                  "                                      print where each rank would run\n");
    for (int i = 0; i < GROUP_TOTAL; i++)
        put_group((enum option_group)i, out);
    put_commands(out);
    buf_puts(out,
             "\nOptions end at the program, or at '--'. TIME is in seconds, or 250ms, 5m, 2h.\n"
             "You can also set --NAME with NAME = VALUE in a configuration file, in the\n"
             "[section] next to the title above, or with the variable HVDRUN_NAME ('_' for\n"
             "'-'). [env] in a file holds variables for the workers.\n"
             "Precedence, lowest first: defaults, ~/.config/hvdrun/config.ini, --config-file,\n"
             "HVDRUN_* variables, flags.\n"
             "Exit status: that of the job; 128 + N if signal N ended it; see hvdrun(1).\n");
}
