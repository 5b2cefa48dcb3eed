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

void docgen_control_names(const char *between, struct buf *out)
{
    for (int i = 0; i < CONTROL_COMMANDS; i++)
        buf_printf(out, "%s%s", i > 0 ? between : "", control_forms[i].word);
}

void docgen_tool_names(const char *between, struct buf *out)
{
    for (const struct control_form *tool = tool_forms; tool->word != NULL; tool++)
        buf_printf(out, "%s%s", tool > tool_forms ? between : "", tool->word);
}

/* Appends a word for troff. Words in capitals stand for values of the user. */
static void put_troff(const char *text, struct buf *out)
{
    for (; *text != '\0'; text++)
        buf_printf(out, *text == '-' ? "\\%c" : "%c", *text);
}

/* The options of this command alone. */
static void put_man_options(int command, struct buf *out)
{
    for (int i = 0; i < CONTROL_OPTION_JSON; i++) {
        const struct control_option_form *option = &control_option_forms[i];
        if (!control_takes_option((enum control_command)command, (enum control_option)i))
            continue;
        buf_puts(out, ".br\n");
        put_troff(option->word, out);
        if (option->letter[0] != '\0')
            buf_printf(out, " (\\-%s)", option->letter + 1);
        buf_puts(out, ": ");
        put_troff(option->help, out);
        buf_puts(out, ".\n");
    }
}

static void put_man_check(struct buf *out)
{
    buf_puts(out, ".SH CHECK\n\\fBhvdrun " CHECK_WORD "\\fR ");
    put_troff(CHECK_OPERANDS, out);
    buf_puts(out, "\n.PP\n" CHECK_HELP ".\nThe options are those of a job, and these:\n"
                  ".TP\n\\fB\\-\\-net\\fR\n" CHECK_NET_HELP ".\n"
                  ".TP\n\\fB\\-\\-gpu\\fR\n" CHECK_GPU_HELP ".\n"
                  ".TP\n\\fB\\-\\-python\\fR \\fIPROGRAM\\fR\n" CHECK_PYTHON_HELP ".\n"
                  ".TP\n\\fB\\-\\-json\\fR\n" CHECK_JSON_HELP ".\n"
                  ".PP\nThe exit status is 0 if a job would run (there may be warnings), 125 if it "
                  "would not, and 2 for\nan error in the command line. \\fBhvdrun \\-\\- check\\fR "
                  "starts a program with that name.\n");
}

static void put_man_tools(struct buf *out)
{
    buf_puts(out, ".SH OTHER COMMANDS\n");
    for (const struct control_form *tool = tool_forms; tool->word != NULL; tool++) {
        buf_printf(out, ".TP\n\\fB%s\\fR ", tool->word);
        put_troff(tool->operands, out);
        buf_printf(out, "\n%s; see \\fBhvdrun %s \\-\\-help\\fR.\n", tool->help, tool->word);
    }
}

void docgen_control_man(struct buf *out)
{
    put_man_check(out);
    put_man_tools(out);
    buf_puts(out, ".SH COMMANDS\n"
                  "These commands show and control your jobs on this machine.\n"
                  "A command must be the very first word: \\fBhvdrun \\-\\- status\\fR starts a "
                  "program with that name.\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        struct buf usage AUTO_BUF = BUF_INIT(512);
        control_put_usage((enum control_command)i, &usage);
        size_t length = strlen(control_forms[i].word);
        buf_printf(out, ".TP\n\\fB%s\\fR", control_forms[i].word);
        put_troff(buf_text(&usage) + length, out);
        buf_putc(out, '\n');
        put_troff(control_forms[i].help, out);
        buf_puts(out, ".\n");
        put_man_options(i, out);
    }
    buf_puts(out,
             ".PP\nWith \\fB\\-\\-slurm\\-job\\fR ID, each of them finds the job in that job of "
             "Slurm:\nit starts itself on the first node with srun.\n"
             ".PP\nJOB is " CONTROL_JOB ".\n"
             "Without JOB, a command is about your only running job. \\fBexplain\\fR is about "
             "the job that ended\nlast, and so is \\fBlogs\\fR if no job runs.\n"
             ".PP\n" CONTROL_STATUSES "\n");
}

static void put_bash_case(int command, struct buf *out)
{
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

/* "status|logs|...": the commands for which `wanted` holds. */
static void put_commands(bool (*wanted)(int command), const char *between, struct buf *out)
{
    const char *before = "";
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        if (!wanted(i))
            continue;
        buf_printf(out, "%s%s", before, control_forms[i].word);
        before = between;
    }
}

static bool offers_running(int command)
{
    return control_takes_job((enum control_command)command) && needs_running(command);
}

static bool offers_ended(int command)
{
    return control_takes_job((enum control_command)command) && !needs_running(command);
}

/* The word before is --job, or another option with a value, or none. With "signal", the first word
 * is a job or a signal. A folder of --evidence can follow "explain". */
void docgen_control_bash(struct buf *out)
{
    buf_puts(out, "_hvdrun_offer() {\n"
                  "  COMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n"
                  "}\n"
                  "_hvdrun_jobs() {\n"
                  "  \"${COMP_WORDS[0]}\" ps -q --names $1 2>/dev/null\n"
                  "}\n"
                  "_hvdrun_control() {\n"
                  "  compopt +o filenames +o bashdefault 2>/dev/null\n"
                  "  case $prev in\n"
                  "    --job) _hvdrun_offer \"$(_hvdrun_jobs)\"; return ;;\n"
                  "    ");
    put_valued("|", out);
    buf_puts(out, ") return ;;\n"
                  "  esac\n"
                  "  if [[ $cur == -* ]]; then\n"
                  "    case $1 in\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++)
        put_bash_case(i, out);
    buf_puts(out, "    esac\n"
                  "    return\n"
                  "  fi\n"
                  "  case $1 in\n"
                  "    ");
    put_commands(takes_hosts, "|", out);
    buf_puts(out,
             ")\n      if declare -F _known_hosts_real >/dev/null; then _known_hosts_real -- "
             "\"$cur\"; fi ;;\n"
             "    warm) _hvdrun_offer '" WARM_WORDS "' ;;\n"
             "    signal)\n"
             "      if ((COMP_CWORD == 2)); then _hvdrun_offer \"" SIGNALS " $(_hvdrun_jobs)\"\n"
             "      else _hvdrun_offer '" SIGNALS "'; fi ;;\n    ");
    put_commands(offers_running, "|", out);
    buf_puts(out, ") _hvdrun_offer \"$(_hvdrun_jobs)\" ;;\n    ");
    put_commands(offers_ended, "|", out);
    buf_puts(out, ") _hvdrun_offer \"$(_hvdrun_jobs -a)\" ;;\n"
                  "  esac\n"
                  "  if [[ $1 == explain && ${#COMPREPLY[@]} -eq 0 ]]; then\n"
                  "    compopt -o filenames 2>/dev/null\n"
                  "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                  "  fi\n"
                  "}\n");
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

static void put_zsh_case(int command, struct buf *out)
{
    buf_printf(out, "    %s) _arguments -S", control_forms[command].word);
    for (int i = 0; i < CONTROL_OPTIONS; i++) {
        const struct control_option_form *option = &control_option_forms[i];
        if (!control_takes_option((enum control_command)command, (enum control_option)i))
            continue;
        if (option->letter[0] != '\0') {
            put_zsh_option(option->word, option->letter, (enum control_option)i, out);
            put_zsh_option(option->letter, option->word, (enum control_option)i, out);
        } else {
            put_zsh_option("", option->word, (enum control_option)i, out);
        }
    }
    put_zsh_operands(command, out);
    buf_puts(out, " ;;\n");
}

static void put_zsh_command(const char *word, const char *help, struct buf *out)
{
    buf_printf(out, "    '%s:", word);
    docgen_quote_zsh(help, out);
    buf_puts(out, "' \\\n");
}

/* A local name of a list must not hide a table of zsh's own, such as `commands`. */
void docgen_control_zsh(struct buf *out)
{
    buf_puts(out,
             "_hvdrun_jobs() {\n"
             "  local -a hvdrun_ids\n"
             "  hvdrun_ids=(${(f)\"$(_call_program jobs $hvdrun_program ps -q --names $1)\"})\n"
             "  (($#hvdrun_ids)) && _describe job hvdrun_ids\n"
             "}\n"
             "_hvdrun_program() {\n"
             "  local -a hvdrun_commands\n"
             "  hvdrun_commands=(\\\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++)
        put_zsh_command(control_forms[i].word, control_forms[i].help, out);
    for (const struct control_form *tool = tool_forms; tool->word != NULL; tool++)
        put_zsh_command(tool->word, tool->help, out);
    put_zsh_command(CHECK_WORD, CHECK_HELP, out);
    buf_puts(out, "  )\n"
                  "  ((CURRENT == 2)) && _describe command hvdrun_commands\n"
                  "  _command_names -e\n"
                  "}\n"
                  "_hvdrun_control() {\n"
                  "  local hvdrun_program=$words[1]\n"
                  "  shift words\n"
                  "  ((CURRENT--))\n"
                  "  case $1 in\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++)
        put_zsh_case(i, out);
    buf_puts(out, "  esac\n}\n");
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
    static const struct {
        const char *word, *help;
    } options[] = {{"net", CHECK_NET_HELP},
                   {"gpu", CHECK_GPU_HELP},
                   {"python", CHECK_PYTHON_HELP},
                   {"json", CHECK_JSON_HELP}};
    put_fish_command(CHECK_WORD, CHECK_HELP, out);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        buf_printf(out, "complete -c hvdrun -n '__fish_hvdrun_speaks " CHECK_WORD "' -f -l %s",
                   options[i].word);
        put_fish_help(options[i].help, out);
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

void docgen_control_fish(struct buf *out)
{
    buf_puts(out, "function __fish_hvdrun_jobs\n"
                  "    set -l words (commandline -opc)\n"
                  "    command $words[1] ps -q --names $argv 2>/dev/null\n"
                  "end\n"
                  "function __fish_hvdrun_first_jobs\n"
                  "    test (count (commandline -opc)) -eq 2; and __fish_hvdrun_jobs\n"
                  "end\n");
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
