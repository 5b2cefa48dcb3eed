/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell completions. They complete options, the words of an option, files, folders and hosts. After
 * the options they complete the program and its arguments. The first word can also be a command for
 * a running job.
 */
#include <stdbool.h>
#include <string.h>

#include "cli/spelling.h"
#include "cli/texts.h"
#include "model/settings/option.h"

/* Appends text between single quotes. A backslash escapes the characters of `special`. */
static void put_quoted(const char *text, const char *quote, const char *special, struct buf *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            buf_puts(out, quote);
        else
            buf_printf(out, strchr(special, *text) != NULL ? "\\%c" : "%c", *text);
    }
}

void docgen_quote_zsh(const char *text, struct buf *out)
{
    put_quoted(text, "'\\''", "[]:\\", out);
}

void docgen_quote_fish(const char *text, struct buf *out)
{
    put_quoted(text, "\\'", "\\", out);
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

const struct docgen_mark docgen_shell_marks[] = {
    {.name = "options", .option = any},
    {.name = "separate", .option = separate},
    {.name = "files", .option = is_file},
    {.name = "folders", .option = is_folder},
    {.name = "hosts", .option = is_hosts},
    {.name = "bash-words", .lines = put_word_cases},
    {.name = "zsh-options", .each_spelling = put_zsh_option},
    {.name = "fish-options", .each_spelling = put_fish_option},
    {.name = NULL},
};
