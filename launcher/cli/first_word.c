/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/first_word.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/control_words.h"
#include "io/child.h"
#include "model/settings/suggest.h"

/* Words that people try, and what is near. A program `kill` or `cancel` in PATH is not what they
 * mean. */
static const struct {
    const char *word, *advice;
    bool even_program;
} tried[] = {
    {"version", "'hvdrun --version' prints the version", false},
    {"cancel", "'hvdrun stop' ends a job", true},
    {"kill", "'hvdrun stop' ends a job, and 'hvdrun signal' sends it a signal", true},
    {"list", "'hvdrun ps' lists your jobs", false},
    {"jobs", "'hvdrun ps' lists your jobs", false},
    {"queue", "'hvdrun ps' lists your jobs", false},
    {"usage",
     "'hvdrun top' shows what the ranks of a job use, and 'hvdrun --help all' lists the options",
     false},
    {"stats", "'hvdrun top' shows what the ranks of a job use, and 'hvdrun status' shows a job",
     false},
    {"info", "'hvdrun status' shows a job", true},
    {"show", "'hvdrun status' shows a job", false},
    {"inspect", "'hvdrun status' shows a job", false},
    {"output", "'hvdrun logs' shows the output of a job", false},
    {"start", "leave it out: hvdrun [options] program [arguments]", false},
    {"submit", "hvdrun --detach [options] program starts a job that needs no terminal", false},
};

/* The command that is near a mistyped word. NULL: none is. */
static const char *near_command(const char *word, struct suggest *suggest)
{
    suggest_init(suggest, word, strlen(word));
    for (int i = 0; i < CONTROL_COMMANDS; i++)
        suggest_offer(suggest, control_forms[i].word);
    for (const struct control_form *tool = tool_forms; tool->word != NULL; tool++)
        suggest_offer(suggest, tool->word);
    suggest_offer(suggest, CHECK_WORD);
    return suggest_best(suggest);
}

int first_word_check(int argc, char *const *argv, const char *path, struct error *err)
{
    const char *word = argc > 1 ? argv[1] : "";
    struct suggest suggest;
    if (word[0] == '\0' || word[0] == '-' || strchr(word, '/') != NULL ||
        strcmp(word, CHECK_WORD) == 0)
        return 0;
    char *advice AUTO_FREE = NULL;
    bool even_program = false;
    for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]) && advice == NULL; i++) {
        if (strcmp(tried[i].word, word) == 0)
            advice = mem_strdup(tried[i].advice);
        even_program = advice != NULL && tried[i].even_program;
    }
    const char *near = advice != NULL ? NULL : near_command(word, &suggest);
    if (near != NULL)
        advice = mem_printf("did you mean 'hvdrun %s'?", near);
    char *program AUTO_FREE =
        advice == NULL || even_program ? NULL : child_find(word, path, NULL, NULL);
    if (advice == NULL || program != NULL)
        return 0;
    char *file AUTO_FREE = mem_printf("./%s", word);
    bool lies_here = access(file, X_OK) == 0;
    return error_usage(err, "'%s' is %s: %s ('hvdrun %s%s' starts a program named %s)", word,
                       even_program ? "not a command of hvdrun"
                                    : "neither a command of hvdrun nor a program in PATH",
                       advice, lies_here ? "./" : "-- ", word, word);
}

int first_word_help(int *argc, char ***argv, char **room, struct error *err)
{
    char *const *words = *argv;
    struct suggest suggest;
    if (*argc < 2 || strcmp(words[1], "help") != 0)
        return 0;
    if (*argc > 3)
        return error_usage(err, "expected: hvdrun help [COMMAND | all]");
    bool all = *argc == 3 && strcmp(words[2], "all") == 0;
    bool known =
        *argc == 2 || all || strcmp(words[2], CHECK_WORD) == 0 || tool_find(words[2]) != NULL;
    for (int i = 0; i < CONTROL_COMMANDS && !known; i++)
        known = strcmp(words[2], control_forms[i].word) == 0;
    const char *near = known ? NULL : near_command(words[2], &suggest);
    if (near != NULL)
        return error_usage(err, "hvdrun does not have a command '%s': did you mean '%s'?", words[2],
                           near);
    if (!known)
        return error_usage(err,
                           "hvdrun does not have a command '%s'; 'hvdrun --help' lists the "
                           "commands ('hvdrun -- help' starts a program named help)",
                           words[2]);
    room[0] = words[0];
    room[1] = *argc == 2 || all ? "--help" : words[2];
    room[2] = *argc == 2 ? NULL : all ? words[2] : "--help";
    room[3] = NULL;
    *argv = room;
    return 0;
}

/* Is argv[*i] an option of the check? Moves *i to the last word of it. */
static bool take_own(char *const *argv, int *i, struct check_words *out)
{
    const char *word = argv[*i];
    if (strcmp(word, "--net") == 0)
        out->net = true;
    else if (strcmp(word, "--gpu") == 0)
        out->gpu = true;
    else if (strcmp(word, "--json") == 0)
        out->json = true;
    else if (strncmp(word, "--python=", 9) == 0 && word[9] != '\0')
        out->python = word + 9;
    else if (strcmp(word, "--python") == 0 && argv[*i + 1] != NULL && argv[*i + 1][0] != '\0')
        out->python = argv[++*i];
    else
        return false;
    return true;
}

int check_words_take(char **argv, struct check_words *out)
{
    int count = 0;
    bool own = true;
    *out = (struct check_words){.wanted = argv[0] != NULL && argv[1] != NULL &&
                                          strcmp(argv[1], CHECK_WORD) == 0,
                                .python = "python3"};
    for (int i = 0; argv[i] != NULL; i++) {
        own = own && strcmp(argv[i], "--") != 0;
        if (!out->wanted || i == 0 || !own || (i > 1 && !take_own(argv, &i, out)))
            argv[count++] = argv[i];
    }
    argv[count] = NULL;
    return count;
}

int check_words_refuse(const char *word, struct error *err)
{
    return error_usage(err,
                       "hvdrun check takes options, but no program: unexpected '%s' ('hvdrun -- "
                       "check' starts a program named check)",
                       word);
}

void check_words_help(struct buf *out)
{
    buf_puts(out,
             "Usage: hvdrun check " CHECK_OPERANDS "\n"
             "Checks the hosts before a job does: whether you can reach them, what they have, and\n"
             "whether they reach each other. Starts no program of yours.\n\n"
             "  hvdrun check                        this machine, or all nodes of the allocation\n"
             "  hvdrun check -H a,b --net           two hosts, and the speed of their connection\n"
             "  hvdrun check -H a,b --gpu           two hosts, and all of their GPUs\n\n");
    for (const struct control_option_form *own = check_options; own->word != NULL; own++)
        buf_printf(out, "  %-8s %-16s %s\n", own->word, own->value, own->help);
    buf_puts(
        out,
        "  -q, --quiet               Print only problems and warnings\n\n"
        "OPTIONS are those of a job (hvdrun --help all). The check uses those about hosts and\n"
        "the way to them: -H, --hostfile, --transport, --launch-agent, --ssh-port and the\n"
        "like, --network-interfaces, --start-timeout, --scheduler.\n"
        "Exit status: 0 if a job would run (there may be warnings); 125 if it would not; 2 for\n"
        "an error in the command line.\n"
        "'hvdrun --check-build' prints the features that this hvdrun was built with.\n");
}
