/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_help.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "cli/help_item.h"

static void put_option(const struct control_option_form *option, struct buf *out)
{
    struct buf head AUTO_BUF = BUF_INIT(128);
    buf_printf(&head, "%s%s%s%s%s", option->letter, option->letter[0] != '\0' ? ", " : "",
               option->word, option->value[0] != '\0' ? " " : "", option->value);
    help_item(buf_text(&head), option->help, out);
}

static bool has_time(enum control_command command)
{
    bool has = false;
    for (int i = 0; i < CONTROL_OPTIONS; i++)
        has = has || (control_takes_option(command, (enum control_option)i) &&
                      strcmp(control_option_forms[i].value, "TIME") == 0);
    return has;
}

/* What the command is about if JOB is missing. */
static const char *default_job(enum control_command command)
{
    switch (command) {
    case CONTROL_EXPLAIN: return "the job that ended last";
    case CONTROL_LOGS: return "your only running job, or the job that ended last";
    default: return "your only running job";
    }
}

static void put_notes(enum control_command command, struct buf *out)
{
    bool awaits = command == CONTROL_WAIT || command == CONTROL_ATTACH;
    buf_putc(out, '\n');
    if (command != CONTROL_PS) {
        char *job AUTO_FREE =
            mem_printf("JOB is " CONTROL_JOB ". The default is %s.", default_job(command));
        help_paragraph(job, out);
    }
    if (command == CONTROL_SIGNAL)
        help_paragraph("SIGNAL is a name such as USR1, or a number.", out);
    if (has_time(command))
        help_paragraph("TIME is in seconds, or 250ms, 5m, 2h.", out);
    help_paragraph(awaits ? "Exit status: that of the job; 125 if it does not exist or is lost; 2 "
                            "for an error in the command line."
                          : "Exit status: 0; 1 if the job does not exist or refuses; 2 for an "
                            "error in the command line.",
                   out);
}

void control_help(enum control_command command, struct buf *out)
{
    const struct control_form *form = &control_forms[command];
    char *about AUTO_FREE = mem_printf("%s.", form->help);
    buf_printf(out, "Usage: hvdrun %s [OPTIONS]%s%s\n", form->word,
               form->operands[0] != '\0' ? " " : "", form->operands);
    help_paragraph(about, out);
    buf_putc(out, '\n');
    for (int i = 0; i < CONTROL_OPTIONS; i++) {
        if (control_takes_option(command, (enum control_option)i))
            put_option(&control_option_forms[i], out);
    }
    put_notes(command, out);
}
