/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docgen_control.h"

#include <stdbool.h>
#include <string.h>

#include "cli/check_words.h"
#include "cli/control_forms.h"

struct option {
    char name[32]; /* without its hyphens */
    bool has_value;
    const char *help;
};

/* The `index`th option of a command. First come the options of its own, then those of all commands.
 * False: there are no more. */
static bool find_option(int command, int index, struct option *option)
{
    static const struct option common[] = {
        {"job", true, "The job, if you have several running jobs"},
        {"help", false, "Print the commands for jobs"},
    };
    const char *at = control_forms[command].operands;
    for (at = strstr(at, "[--"); at != NULL; at = strstr(at + 3, "[--")) {
        if (index-- > 0)
            continue;
        size_t length = strcspn(at + 3, " ]");
        *option = (struct option){.has_value = at[3 + length] == ' ',
                                  .help = control_forms[command].help};
        if (length >= sizeof(option->name))
            length = sizeof(option->name) - 1;
        memcpy(option->name, at + 3, length);
        return true;
    }
    index += command == CONTROL_PS; /* it is about all jobs */
    if (index >= (int)(sizeof(common) / sizeof(common[0])))
        return false;
    *option = common[index];
    return true;
}

static bool takes_hosts(int command)
{
    return strncmp(control_forms[command].operands, "HOST", 4) == 0;
}

void docgen_control_names(const char *between, struct buf *out)
{
    for (int i = 0; i < CONTROL_COMMANDS; i++)
        buf_printf(out, "%s%s", i > 0 ? between : "", control_forms[i].word);
}

/* Appends a word for troff. Words in capitals stand for values of the user. */
static void put_troff(const char *text, struct buf *out)
{
    for (; *text != '\0'; text++)
        buf_printf(out, *text == '-' ? "\\%c" : "%c", *text);
}

static void put_man_check(struct buf *out)
{
    buf_puts(out, ".SH CHECK\n\\fBhvdrun " CHECK_WORD "\\fR ");
    put_troff(CHECK_OPERANDS, out);
    buf_puts(out, "\n.PP\n" CHECK_HELP ".\nThe options are those of a job, and these:\n"
                  ".TP\n\\fB\\-\\-net\\fR\n" CHECK_NET_HELP ".\n"
                  ".TP\n\\fB\\-\\-json\\fR\n" CHECK_JSON_HELP ".\n"
                  ".PP\nThe exit status is 0 if a job would run (there may be warnings), 125 if it "
                  "would not, and 2 for\nan error in the command line. \\fBhvdrun \\-\\- check\\fR "
                  "starts a program with that name.\n");
}

void docgen_control_man(struct buf *out)
{
    put_man_check(out);
    buf_puts(out, ".SH COMMANDS\n"
                  "These commands show and control your jobs on this machine.\n"
                  "A command must be the very first word: \\fBhvdrun \\-\\- status\\fR starts a "
                  "program with that name.\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        buf_printf(out, ".TP\n\\fB%s\\fR ", control_forms[i].word);
        put_troff(control_forms[i].operands, out);
        buf_putc(out, '\n');
        put_troff(control_forms[i].help, out);
        buf_puts(out, ".\n");
    }
    buf_puts(out, ".PP\n" CONTROL_WHICH_JOB "\n.PP\n" CONTROL_STATUSES "\n");
}

static void put_bash_case(int command, struct buf *out)
{
    struct option option;
    buf_printf(out, "      %s) COMPREPLY=($(compgen -W '", control_forms[command].word);
    for (int i = 0; find_option(command, i, &option); i++)
        buf_printf(out, "%s--%s", i > 0 ? " " : "", option.name);
    buf_puts(out, "' -- \"$cur\")) ;;\n");
}

void docgen_control_bash(struct buf *out)
{
    buf_puts(out, "_hvdrun_control() {\n"
                  "  case $prev in --job|--within|--grace|--ranks|--since|--lines) return ;; esac\n"
                  "  if [[ $cur == -* ]]; then\n"
                  "    case $1 in\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++)
        put_bash_case(i, out);
    buf_puts(
        out,
        "    esac\n"
        "  elif [[ $1 == *drain || $1 == add ]] && declare -F _known_hosts_real >/dev/null; then\n"
        "    _known_hosts_real -- \"$cur\"\n"
        "  fi\n"
        "}\n");
}

/* Appends text inside single quotes, where a colon would end the word. */
static void put_zsh_text(const char *text, struct buf *out)
{
    for (; *text != '\0'; text++)
        buf_printf(out, strchr("[]:\\", *text) != NULL ? "\\%c" : "%c", *text);
}

static void put_zsh_case(int command, struct buf *out)
{
    struct option option;
    buf_printf(out, "    %s) _arguments -S", control_forms[command].word);
    for (int i = 0; find_option(command, i, &option); i++) {
        buf_printf(out, " '--%s[", option.name);
        put_zsh_text(option.help, out);
        buf_printf(out, "]%s'", option.has_value ? ":value:" : "");
    }
    buf_printf(out, " '1:%s' ;;\n", takes_hosts(command) ? "host:_hosts" : "job:");
}

void docgen_control_zsh(struct buf *out)
{
    buf_puts(out, "_hvdrun_program() {\n"
                  "  local -a commands\n"
                  "  commands=(\\\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        buf_printf(out, "    '%s:", control_forms[i].word);
        put_zsh_text(control_forms[i].help, out);
        buf_puts(out, "' \\\n");
    }
    buf_printf(out, "    '%s:%s' \\\n", CHECK_WORD, CHECK_HELP);
    buf_puts(out, "  )\n"
                  "  ((CURRENT == 2)) && _describe command commands\n"
                  "  _command_names -e\n"
                  "}\n"
                  "_hvdrun_control() {\n"
                  "  shift words\n"
                  "  ((CURRENT--))\n"
                  "  case $1 in\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++)
        put_zsh_case(i, out);
    buf_puts(out, "  esac\n}\n");
}

static void put_fish_check(struct buf *out)
{
    static const char line[] =
        "complete -c hvdrun -n '__fish_hvdrun_speaks " CHECK_WORD "' -f -l %s -d '%s'\n";
    buf_printf(out, "complete -c hvdrun -n __fish_is_word_one_of_hvdrun -a %s -d '%s'\n",
               CHECK_WORD, CHECK_HELP);
    buf_printf(out, line, "net", CHECK_NET_HELP);
    buf_printf(out, line, "json", CHECK_JSON_HELP);
}

void docgen_control_fish(struct buf *out)
{
    struct option option;
    put_fish_check(out);
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        const struct control_form *form = &control_forms[i];
        buf_printf(out, "complete -c hvdrun -n __fish_is_word_one_of_hvdrun -a %s -d '%s'\n",
                   form->word, form->help);
        if (takes_hosts(i))
            buf_printf(out,
                       "complete -c hvdrun -n '__fish_hvdrun_speaks %s' -f -a "
                       "'(__fish_print_hostnames)'\n",
                       form->word);
        for (int at = 0; find_option(i, at, &option); at++)
            buf_printf(out, "complete -c hvdrun -n '__fish_hvdrun_speaks %s' -f -l %s%s -d '%s'\n",
                       form->word, option.name, option.has_value ? " -x" : "", option.help);
    }
}
