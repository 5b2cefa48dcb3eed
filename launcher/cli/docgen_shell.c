/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell completions. They complete options, the words of an option, files, folders and hosts. After
 * the options they complete the program and its arguments. The first word can also be a command for
 * a running job.
 */
#include <stdbool.h>
#include <string.h>

#include "cli/first_word.h"
#include "cli/spelling.h"
#include "cli/texts.h"
#include "model/settings/option.h"

struct listing {
    struct buf *out;
    bool (*wanted)(const struct spelling *spelling);
    const char *between;
    size_t count;
};

static int list_one(void *context, const struct spelling *spelling)
{
    struct listing *listing = context;
    if (spelling->instead == NULL && listing->wanted(spelling))
        buf_printf(listing->out, "%s%s", listing->count++ > 0 ? listing->between : "",
                   spelling->word);
    return 0;
}

static size_t list(bool (*wanted)(const struct spelling *spelling), const char *between,
                   struct buf *out)
{
    struct listing listing = {.out = out, .wanted = wanted, .between = between};
    spelling_each(list_one, &listing);
    return listing.count;
}

static unsigned flags_of(const struct spelling *spelling)
{
    return option_info(spelling->id)->flags;
}

static bool any(const struct spelling *spelling)
{
    bool bare = spelling->fixed != NULL;
    return bare || (flags_of(spelling) & FLAG_EQUALS) == 0;
}

/* True: the value of the option is the next word. */
static bool separate(const struct spelling *spelling)
{
    return spelling->fixed == NULL && (flags_of(spelling) & FLAG_EQUALS) == 0;
}

static bool is_file(const struct spelling *spelling)
{
    return spelling->fixed == NULL && (flags_of(spelling) & FLAG_FILE) != 0;
}

static bool is_folder(const struct spelling *spelling)
{
    return spelling->fixed == NULL && (flags_of(spelling) & FLAG_DIR) != 0;
}

static bool is_hosts(const struct spelling *spelling)
{
    return spelling->id == OPT_hosts;
}

/* Appends a case for each option that has words. */
static void put_word_cases(struct buf *out)
{
    for (int i = 0; i < OPT_TOTAL; i++) {
        enum option_id id = (enum option_id)i;
        struct buf words AUTO_BUF = BUF_INIT(512);
        char name[OPTION_NAME_MAX];
        describe_words(id, " ", &words);
        if (words.length == 0)
            continue;
        buf_printf(out, "    --%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return 0 ;;\n",
                   option_name(id, name), buf_text(&words));
    }
}

static void put_bash_values(struct buf *out)
{
    buf_puts(out, "# What may follow option $1; false when it takes no separate value.\n"
                  "_hvdrun_value() {\n"
                  "  case $1 in\n");
    put_word_cases(out);
    buf_puts(out, "    ");
    list(is_file, "|", out);
    buf_puts(out, ")\n      COMPREPLY=($(compgen -f -- \"$cur\")); return 0 ;;\n    ");
    list(is_folder, "|", out);
    buf_puts(out, ")\n      COMPREPLY=($(compgen -d -- \"$cur\")); return 0 ;;\n    ");
    list(is_hosts, "|", out);
    buf_puts(out, ")\n      if declare -F _known_hosts_real >/dev/null; then _known_hosts_real -- "
                  "\"$cur\"; fi\n      return 0 ;;\n    ");
    list(separate, "|", out);
    buf_puts(out, ")\n      return 0 ;;\n  esac\n  return 1\n}\n");
}

void docgen_bash(struct buf *out)
{
    buf_puts(out, "# bash completion of hvdrun; generated from the list of options\n");
    put_bash_values(out);
    buf_puts(out, "_hvdrun_separate() {\n  case $1 in\n    ");
    list(separate, "|", out);
    buf_puts(out, ") return 0 ;;\n  esac\n  return 1\n}\n");
    docgen_control_bash(out);
    buf_puts(out, "_hvdrun() {\n"
                  "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at\n"
                  "  COMPREPLY=()\n"
                  "  # bash splits --color=auto at the '='\n"
                  "  if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then "
                  "prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                  "  if ((COMP_CWORD > 1)); then\n"
                  "    case ${COMP_WORDS[1]} in\n      ");
    docgen_control_names("|", out);
    buf_puts(out, ") _hvdrun_control \"${COMP_WORDS[1]}\"; return ;;\n"
                  "      help) _hvdrun_offer '");
    docgen_control_names(" ", out);
    buf_putc(out, ' ');
    docgen_tool_names(" ", out);
    buf_puts(out, " check all'; return ;;\n      ");
    docgen_tool_names("|", out);
    buf_puts(out, ") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n    esac\n"
                  "  fi\n"
                  "  local check=\n"
                  "  if [[ COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == check ]]; then check=1; fi\n"
                  "  for ((at = 1 + check; at < COMP_CWORD; at++)); do\n"
                  "    case ${COMP_WORDS[at]} in\n"
                  "      --) ((at++)); break ;;\n"
                  "      -*) if [[ ${COMP_WORDS[at+1]} == '=' ]]; then ((at += 2))\n"
                  "          elif _hvdrun_separate \"${COMP_WORDS[at]}\"; then ((at++)); fi ;;\n"
                  "      *) break ;;\n"
                  "    esac\n"
                  "  done\n"
                  "  if ((at < COMP_CWORD)); then\n"
                  "    if declare -F _command_offset >/dev/null; then _command_offset $at\n"
                  "    else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
                  "    return\n"
                  "  fi\n"
                  "  if _hvdrun_value \"$prev\"; then return; fi\n"
                  "  if [[ $cur == -* ]]; then\n"
                  "    COMPREPLY=($(compgen -W '");
    list(any, " ", out);
    buf_puts(out, "' -- \"$cur\"))\n"
                  "    if [[ $check ]]; then COMPREPLY+=($(compgen -W '--net --gpu "
                  "--python --json' -- \"$cur\")); fi\n"
                  "    return\n"
                  "  fi\n"
                  "  if [[ $check ]]; then return; fi\n"
                  "  # without a letter, all programs of PATH would be too many\n"
                  "  if [[ $cur ]]; then COMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
                  "  elif ((COMP_CWORD > 1)); then COMPREPLY=($(compgen -f)); fi\n"
                  "  if ((COMP_CWORD == 1)); then COMPREPLY+=($(compgen -W '");
    docgen_control_names(" ", out);
    buf_putc(out, ' ');
    docgen_tool_names(" ", out);
    buf_puts(out, " check help' -- \"$cur\")); fi\n"
                  "}\n"
                  "complete -o filenames -o bashdefault -F _hvdrun hvdrun\n");
}

static int put_zsh_option(void *context, const struct spelling *spelling)
{
    struct buf *out = context;
    const struct option_info *info = option_info(spelling->id);
    struct buf words AUTO_BUF = BUF_INIT(512);
    bool equals = (info->flags & FLAG_EQUALS) != 0 && spelling->fixed == NULL;
    if (spelling->instead != NULL)
        return 0;
    buf_printf(out, "    '*%s%s[", spelling->word, equals ? "=-" : "");
    docgen_quote_zsh(spelling->help != NULL ? spelling->help : info->help, out);
    buf_puts(out, "]");
    if (spelling->fixed == NULL) {
        buf_putc(out, ':');
        docgen_quote_zsh(info->arg, out);
        buf_putc(out, ':');
        describe_words(spelling->id, " ", &words);
        if (words.length > 0)
            buf_printf(out, "(%s)", buf_text(&words));
        else if (is_file(spelling))
            buf_puts(out, "_files");
        else if (is_folder(spelling))
            buf_puts(out, "_files -/");
        else if (is_hosts(spelling))
            buf_puts(out, "_hosts");
    }
    buf_puts(out, "' \\\n");
    return 0;
}

/* An option of the check. */
static void put_zsh_own(const char *word, const char *help, const char *end, struct buf *out)
{
    buf_printf(out, "'%s[", word);
    docgen_quote_zsh(help, out);
    buf_printf(out, "]%s", end);
}

void docgen_zsh(struct buf *out)
{
    buf_puts(out, "#compdef hvdrun\n# generated from the list of options\n");
    docgen_control_zsh(out);
    buf_puts(out, "_hvdrun() {\n"
                  "  if ((CURRENT > 2)); then\n"
                  "    case $words[2] in\n"
                  "      ");
    docgen_control_names("|", out);
    buf_puts(out, ") _hvdrun_control $words[2]; return ;;\n      ");
    docgen_tool_names("|", out);
    buf_puts(out, ") _files; return ;;\n"
                  "    esac\n"
                  "  fi\n"
                  "  local -a own\n"
                  "  if ((CURRENT > 2)) && [[ $words[2] == check ]]; then\n"
                  "    shift words\n"
                  "    ((CURRENT--))\n"
                  "    own=(");
    put_zsh_own("--net", CHECK_NET_HELP, "' ", out);
    put_zsh_own("--json", CHECK_JSON_HELP, "'\n         ", out);
    put_zsh_own("--gpu", CHECK_GPU_HELP, "'\n         ", out);
    put_zsh_own("--python", CHECK_PYTHON_HELP, ":program:_files')\n", out);
    buf_puts(out, "  fi\n"
                  "  _arguments -S $own \\\n");
    spelling_each(put_zsh_option, out);
    buf_puts(out, "    '(-)1:program:_hvdrun_program' \\\n    '*::arguments:_normal'\n}\n"
                  "_hvdrun \"$@\"\n");
}

static int put_fish_option(void *context, const struct spelling *spelling)
{
    struct buf *out = context;
    const struct option_info *info = option_info(spelling->id);
    const char *word = spelling->word + strspn(spelling->word, "-");
    bool two = spelling->word[1] == '-';
    struct buf words AUTO_BUF = BUF_INIT(512);
    if (spelling->instead != NULL)
        return 0;
    buf_printf(out, "complete -c hvdrun -n __fish_is_first_hvdrun %s %s",
               two               ? "-l"
               : word[1] == '\0' ? "-s"
                                 : "-o",
               word);
    if (spelling->fixed == NULL) {
        describe_words(spelling->id, " ", &words);
        if (words.length > 0)
            buf_printf(out, " -x -a '%s'", buf_text(&words));
        else if (is_hosts(spelling))
            buf_puts(out, " -x -a '(__fish_print_hostnames)'");
        else if (is_folder(spelling))
            buf_puts(out, " -x -a '(__fish_complete_directories)'");
        else
            buf_puts(out, is_file(spelling) ? " -r" : " -x");
    }
    buf_puts(out, " -d '");
    docgen_quote_fish(spelling->help != NULL ? spelling->help : info->help, out);
    buf_puts(out, "'\n");
    return 0;
}

/* The index of the word after the options, which is the program. */
static void put_fish_at(struct buf *out)
{
    buf_puts(out, "function __fish_hvdrun_at\n"
                  "    set -l words (commandline -opc)\n"
                  "    set -l at 2\n"
                  "    while set -q words[$at]\n"
                  "        switch $words[$at]\n"
                  "            case ");
    list(separate, " ", out);
    buf_puts(out, "\n"
                  "                set at (math $at + 2)\n"
                  "            case --\n"
                  "                set at (math $at + 1)\n"
                  "                break\n"
                  "            case '-*'\n"
                  "                set at (math $at + 1)\n"
                  "            case '*'\n"
                  "                break\n"
                  "        end\n"
                  "    end\n"
                  "    echo $at\n"
                  "end\n");
}

void docgen_fish(struct buf *out)
{
    buf_puts(out, "# fish completion of hvdrun; generated from the list of options\n");
    put_fish_at(out);
    buf_puts(out, "function __fish_is_job_of_hvdrun\n"
                  "    set -l words (commandline -opc)\n"
                  "    not contains -- \"$words[2]\" help ");
    docgen_control_names(" ", out);
    buf_putc(out, ' ');
    docgen_tool_names(" ", out);
    buf_puts(out, "\nend\n"
                  "function __fish_is_first_hvdrun\n"
                  "    set -l words (commandline -opc)\n"
                  "    __fish_is_job_of_hvdrun; and not contains -- -- $words\n"
                  "    and test \"$words[2]\" = check -o (__fish_hvdrun_at) -gt (count $words)\n"
                  "end\n"
                  "function __fish_hvdrun_program\n"
                  "    set -l words (commandline -opc)\n"
                  "    set -l at (__fish_hvdrun_at)\n"
                  "    set -l line\n"
                  "    if test $at -le (count $words)\n"
                  "        set line (string escape -- $words[$at..-1])\n"
                  "    end\n"
                  "    complete -C (string join ' ' -- $line (commandline -ct))\n"
                  "end\n"
                  "function __fish_is_word_one_of_hvdrun\n"
                  "    test (count (commandline -opc)) -eq 1\n"
                  "end\n"
                  "function __fish_hvdrun_speaks\n"
                  "    set -l words (commandline -opc)\n"
                  "    test \"$words[2]\" = $argv[1]\n"
                  "end\n");
    spelling_each(put_fish_option, out);
    docgen_control_fish(out);
    buf_puts(out, "complete -c hvdrun -n __fish_is_job_of_hvdrun -a '(__fish_hvdrun_program)'\n"
                  "complete -c hvdrun -n '__fish_hvdrun_speaks help' -f -a '");
    docgen_control_names(" ", out);
    buf_putc(out, ' ');
    docgen_tool_names(" ", out);
    buf_puts(out, " check all'\n");
}
