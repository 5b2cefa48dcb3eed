/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_words.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/status.h"
#include "model/hosts/entry.h"
#include "model/hosts/hosts.h"

struct command {
    const char *word, *operands, *help;
};

static const struct command commands[CONTROL_COMMANDS] = {
#define CONTROL_ROW(name, word, operands, help) [name] = {word, operands, help},
    CONTROL_COMMAND_LIST(CONTROL_ROW)
#undef CONTROL_ROW
};

static enum control_command find_command(const char *word)
{
    int command = 0;
    while (command < CONTROL_COMMANDS && strcmp(commands[command].word, word) != 0)
        command++;
    return (enum control_command)command;
}

static int wrong(const struct control_words *words, struct error *err)
{
    const struct command *command = &commands[words->command];
    return error_status(err, STATUS_USAGE, "expected: hvdrun %s %s%s", command->word,
                        command->operands, words->command == CONTROL_STATUS ? "" : " [--job JOB]");
}

/* The value of `--name VALUE` or `--name=VALUE` at argv[*at], and "" if there is no value. Moves
 * `*at` to the value. NULL: it is another option. */
static const char *option_value(const char *name, int argc, char *const *argv, int *at)
{
    size_t length = strlen(name);
    const char *word = argv[*at];
    if (strncmp(word, name, length) != 0)
        return NULL;
    if (word[length] == '=')
        return word + length + 1;
    if (word[length] != '\0')
        return NULL;
    if (*at + 1 == argc)
        return "";
    (*at)++;
    return argv[*at];
}

static int take_option(struct control_words *words, int argc, char *const *argv, int *at,
                       struct error *err)
{
    const char *word = argv[*at];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        words->help = true;
        return 0;
    }
    if (words->command == CONTROL_STATUS && strcmp(word, "--json") == 0) {
        words->json = true;
        return 0;
    }
    const char *value = option_value("--job", argc, argv, at);
    if (value != NULL && value[0] != '\0' && words->job == NULL) {
        words->job = value;
        return 0;
    }
    if (value == NULL && words->command == CONTROL_DRAIN)
        value = option_value("--within", argc, argv, at);
    else
        value = NULL;
    if (value == NULL) {
        wrong(words, err);
        return error_wrap(err, "%s", word);
    }
    words->has_within = true;
    if (parse_duration_ms(value, &words->within_ms, err) == 0)
        return 0;
    if (err != NULL)
        err->status = STATUS_USAGE;
    return error_wrap(err, "--within");
}

static int check_object(const struct control_words *words, struct error *err)
{
    struct host_list hosts = {0};
    int result = 0;
    if (words->command == CONTROL_STATUS)
        return 0;
    if (words->object == NULL)
        return wrong(words, err);
    if (words->command == CONTROL_ADD)
        result = hosts_parse(words->object, &hosts, err);
    else if (!name_is_safe(words->object, strlen(words->object)))
        result = error_status(err, STATUS_USAGE, "'%s' is not the name of a host", words->object);
    hosts_destroy(&hosts);
    return result;
}

int control_words_parse(int argc, char *const *argv, struct control_words *out, struct error *err)
{
    *out = (struct control_words){.command = CONTROL_COMMANDS};
    if (argc > 1)
        out->command = find_command(argv[1]);
    if (out->command == CONTROL_COMMANDS)
        return 0;
    for (int i = 2; i < argc; i++) {
        const char **operand = out->command == CONTROL_STATUS ? &out->job : &out->object;
        if (argv[i][0] == '-') {
            if (take_option(out, argc, argv, &i, err) < 0)
                return -1;
        } else if (argv[i][0] == '\0') {
            wrong(out, err);
            return error_wrap(err, "an argument is empty");
        } else if (*operand == NULL) {
            *operand = argv[i];
        } else {
            wrong(out, err);
            return error_wrap(err, "unexpected '%s'", argv[i]);
        }
    }
    if (!out->help && check_object(out, err) < 0)
        return -1;
    return 1;
}

void control_words_help(struct buf *out)
{
    buf_puts(out, "Commands for your running jobs on this machine:\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        char line[128];
        snprintf(line, sizeof(line), "hvdrun %s %s", commands[i].word, commands[i].operands);
        buf_printf(out, "  %-32s  %s\n", line, commands[i].help);
    }
    buf_puts(out,
             "If you have several running jobs, give JOB, or --job JOB with the other commands.\n"
             "JOB is the job's id, or the path of its control socket.\n"
             "Exit status: 0; 2 for an error in the command line; 1 if the job does not "
             "exist or refuses.\n");
}
