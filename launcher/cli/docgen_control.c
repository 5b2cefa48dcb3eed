/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/texts.h"

#include <stdbool.h>
#include <string.h>

#include "cli/control_words.h"
#include "cli/first_word.h"

#define WARM_WORDS "start list stop"
#define SIGNALS "HUP INT QUIT KILL USR1 USR2 TERM"

static bool takes_hosts(int command)
{
    return strncmp(control_forms[command].operands, "HOST", 4) == 0;
}

/* False: the command can say something about a job that has ended. */
static bool needs_running(int command)
{
    return command != CONTROL_STATUS && command != CONTROL_LOGS && command != CONTROL_WAIT &&
           command != CONTROL_EXPLAIN;
}

static const char *without_hyphens(const char *word)
{
    return word + strspn(word, "-");
}

static void put_tools(const char *between, struct buf *out)
{
    for (const struct control_form *tool = tool_forms; tool->word != NULL; tool++)
        buf_printf(out, "%s%s", tool > tool_forms ? between : "", tool->word);
}

static void put_check_options(const char *between, struct buf *out)
{
    for (const struct control_option_form *own = check_options; own->word != NULL; own++)
        buf_printf(out, "%s%s", own > check_options ? between : "", own->word);
}

static void put_bash_cases(struct buf *out)
{
    for (int command = 0; command < CONTROL_COMMANDS; command++) {
        const char *between = "";
        buf_printf(out, "      %s) _hvdrun_offer '", control_forms[command].word);
        for (int i = 0; i < CONTROL_OPTIONS; i++) {
            if (!control_takes_option((enum control_command)command, (enum control_option)i))
                continue;
            buf_printf(out, "%s%s", between, control_option_forms[i].word);
            between = " ";
        }
        buf_puts(out, "' ;;\n");
    }
}

/* "--ranks|--since|...": the options whose value is the next word. */
static void put_valued(const char *between, struct buf *out)
{
    const char *before = "";
    for (int i = 0; i < CONTROL_OPTIONS; i++) {
        const struct control_option_form *option = &control_option_forms[i];
        if (option->value[0] == '\0' || i == CONTROL_OPTION_JOB)
            continue;
        buf_printf(out, "%s%s", before, option->word);
        if (option->letter[0] != '\0')
            buf_printf(out, "%s%s", between, option->letter);
        before = between;
    }
}

static bool any(int command)
{
    (void)command;
    return true;
}

static bool offers_running(int command)
{
    return control_takes_job((enum control_command)command) && needs_running(command);
}

static bool offers_ended(int command)
{
    return control_takes_job((enum control_command)command) && !needs_running(command);
}

static const char *zsh_value(enum control_option option)
{
    if (option == CONTROL_OPTION_JOB)
        return ":job: _hvdrun_jobs"; /* the blank: without further arguments */
    return control_option_forms[option].value[0] != '\0' ? ":value:" : "";
}

static void put_zsh_operands(int command, struct buf *out)
{
    if (takes_hosts(command))
        buf_puts(out, " '1:host:_hosts'");
    else if (command == CONTROL_SIGNAL)
        buf_puts(out, " '1:job:{_hvdrun_jobs; compadd " SIGNALS "}' '2:signal:(" SIGNALS ")'");
    else if (command == CONTROL_WARM)
        buf_puts(out, " '1:what:(" WARM_WORDS ")'");
    else if (command == CONTROL_EXPLAIN)
        buf_puts(out, " '1:job:{_hvdrun_jobs -a || _files}'");
    else if (control_takes_job((enum control_command)command))
        buf_printf(out, " '1:job: _hvdrun_jobs%s'", needs_running(command) ? "" : " -a");
}

/* One spelling. `other`: the one that is not offered beside it, or "". */
static void put_zsh_option(const char *other, const char *word, enum control_option option,
                           struct buf *out)
{
    buf_printf(out, other[0] == '\0' ? " '%s%s[" : " '(%s)%s[", other, word);
    docgen_quote_zsh(control_option_forms[option].help, out);
    buf_printf(out, "]%s'", zsh_value(option));
}

static void put_zsh_cases(struct buf *out)
{
    for (int command = 0; command < CONTROL_COMMANDS; command++) {
        buf_printf(out, "    %s) _arguments -S", control_forms[command].word);
        for (int i = 0; i < CONTROL_OPTIONS; i++) {
            const struct control_option_form *option = &control_option_forms[i];
            if (!control_takes_option((enum control_command)command, (enum control_option)i))
                continue;
            if (option->letter[0] != '\0')
                put_zsh_option(option->word, option->letter, (enum control_option)i, out);
            put_zsh_option(option->letter, option->word, (enum control_option)i, out);
        }
        put_zsh_operands(command, out);
        buf_puts(out, " ;;\n");
    }
}

static void put_zsh_command(const char *word, const char *help, struct buf *out)
{
    buf_printf(out, "    '%s:", word);
    docgen_quote_zsh(help, out);
    buf_puts(out, "' \\\n");
}

static void put_zsh_commands(struct buf *out)
{
    for (int i = 0; i < CONTROL_COMMANDS; i++)
        put_zsh_command(control_forms[i].word, control_forms[i].help, out);
    for (const struct control_form *tool = tool_forms; tool->word != NULL; tool++)
        put_zsh_command(tool->word, tool->help, out);
    put_zsh_command(CHECK_WORD, CHECK_HELP, out);
}

static void put_zsh_check(struct buf *out)
{
    for (const struct control_option_form *own = check_options; own->word != NULL; own++) {
        buf_printf(out, "%s'%s[", own > check_options ? "\n         " : "", own->word);
        docgen_quote_zsh(own->help, out);
        buf_printf(out, "]%s'", own->value[0] == '\0' ? "" : ":program:_files");
    }
}

/* The end of a line. */
static void put_fish_help(const char *help, struct buf *out)
{
    buf_puts(out, " -d '");
    docgen_quote_fish(help, out);
    buf_puts(out, "'\n");
}

static void put_fish_command(const char *word, const char *help, struct buf *out)
{
    buf_printf(out, "complete -c hvdrun -n __fish_is_word_one_of_hvdrun -a %s", word);
    put_fish_help(help, out);
}

static void put_fish_check(struct buf *out)
{
    put_fish_command(CHECK_WORD, CHECK_HELP, out);
    for (const struct control_option_form *own = check_options; own->word != NULL; own++) {
        buf_printf(out, "complete -c hvdrun -n '__fish_hvdrun_speaks " CHECK_WORD "' -f -l %s",
                   without_hyphens(own->word));
        put_fish_help(own->help, out);
    }
}

static void put_fish_operands(int command, struct buf *out)
{
    const char *word = control_forms[command].word;
    static const char line[] = "complete -c hvdrun -n '__fish_hvdrun_speaks %s' -f%s\n";
    const char *jobs =
        needs_running(command) ? " -a '(__fish_hvdrun_jobs)'" : " -a '(__fish_hvdrun_jobs -a)'";
    if (takes_hosts(command))
        buf_printf(out, line, word, " -a '(__fish_print_hostnames)'");
    else if (command == CONTROL_SIGNAL)
        buf_printf(out, line, word, " -a '" SIGNALS " (__fish_hvdrun_first_jobs)'");
    else if (command == CONTROL_WARM)
        buf_printf(out, line, word, " -a '" WARM_WORDS "'");
    else if (command == CONTROL_EXPLAIN)
        buf_printf(out, "complete -c hvdrun -n '__fish_hvdrun_speaks %s' -F%s\n", word, jobs);
    else if (control_takes_job((enum control_command)command))
        buf_printf(out, line, word, jobs);
    else
        buf_printf(out, line, word, "");
}

static void put_fish_option(int command, enum control_option which, struct buf *out)
{
    const struct control_option_form *option = &control_option_forms[which];
    buf_printf(out, "complete -c hvdrun -n '__fish_hvdrun_speaks %s' -f -l %s",
               control_forms[command].word, without_hyphens(option->word));
    if (option->letter[0] != '\0')
        buf_printf(out, " -s %s", without_hyphens(option->letter));
    if (which == CONTROL_OPTION_JOB)
        buf_puts(out, " -x -a '(__fish_hvdrun_jobs)'");
    else if (option->value[0] != '\0')
        buf_puts(out, " -x");
    put_fish_help(option->help, out);
}

static void put_fish_commands(struct buf *out)
{
    put_fish_check(out);
    for (const struct control_form *tool = tool_forms; tool->word != NULL; tool++)
        put_fish_command(tool->word, tool->help, out);
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        const struct control_form *form = &control_forms[i];
        put_fish_command(form->word, form->help, out);
        put_fish_operands(i, out);
        for (int at = 0; at < CONTROL_OPTIONS; at++) {
            if (control_takes_option((enum control_command)i, (enum control_option)at))
                put_fish_option(i, (enum control_option)at, out);
        }
    }
}

const struct docgen_mark docgen_control_marks[] = {
    {.name = "commands", .command = any},
    {.name = "host-commands", .command = takes_hosts},
    {.name = "running-commands", .command = offers_running},
    {.name = "ended-commands", .command = offers_ended},
    {.name = "tools", .words = put_tools},
    {.name = "check-options", .words = put_check_options},
    {.name = "valued", .words = put_valued},
    {.name = "warm-words", .text = WARM_WORDS},
    {.name = "signals", .text = SIGNALS},
    {.name = "bash-cases", .lines = put_bash_cases},
    {.name = "zsh-cases", .lines = put_zsh_cases},
    {.name = "zsh-commands", .lines = put_zsh_commands},
    {.name = "zsh-check", .lines = put_zsh_check},
    {.name = "fish-commands", .lines = put_fish_commands},
    {.name = NULL},
};
