/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <stdbool.h>

#include "cli/check_words.h"
#include "cli/control_forms.h"
#include "cli/describe.h"
#include "cli/help_item.h"
#include "model/settings/option.h"

static void put_option(enum option_id id, struct buf *out)
{
    struct buf head AUTO_BUF = BUF_INIT(256), text AUTO_BUF = BUF_INIT(1024);
    describe_spellings(id, false, &head);
    describe_help(id, &text);
    help_item(buf_text(&head), buf_text(&text), out);
    const struct option_fixed *fixed = option_fixed(0);
    for (size_t i = 0; fixed != NULL; fixed = option_fixed(++i)) {
        if (fixed->id == id && fixed->help != NULL)
            help_item(fixed->spelling, fixed->help, out);
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
    help_item(CHECK_WORD " " CHECK_OPERANDS, CHECK_HELP, out);
    buf_puts(out, "\nCommands for your jobs (hvdrun help status)\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        struct buf head AUTO_BUF = BUF_INIT(256);
        control_put_usage((enum control_command)i, &head);
        help_item(buf_text(&head), control_forms[i].help, out);
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
