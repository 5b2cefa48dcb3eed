/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_words.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/status.h"
#include "model/exit/signal_name.h"
#include "model/hosts/entry.h"
#include "model/hosts/hosts.h"

#define LINES_MAX 1000000

static enum control_command find_command(const char *word)
{
    int command = 0;
    while (command < CONTROL_COMMANDS && strcmp(control_forms[command].word, word) != 0)
        command++;
    return (enum control_command)command;
}

static bool names(const struct control_words *words, const char *part)
{
    return strstr(control_forms[words->command].operands, part) != NULL;
}

/* --job says the same as an operand JOB. */
static bool shows_job_option(const struct control_words *words)
{
    return !names(words, "[JOB]") && words->command != CONTROL_PS;
}

static bool takes_object(const struct control_words *words)
{
    return names(words, "HOST") || names(words, "SIGNAL");
}

static int wrong(const struct control_words *words, struct error *err)
{
    const struct control_form *form = &control_forms[words->command];
    return error_status(err, STATUS_USAGE, "expected: hvdrun %s %s%s", form->word, form->operands,
                        shows_job_option(words) ? " [--job JOB]" : "");
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

/* false: it is not an option without a value, or the command does not take it. */
static bool take_flag(struct control_words *words, const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        words->help = true;
    else if (strcmp(word, "--json") == 0 && names(words, "[--json]"))
        words->json = true;
    else if ((strcmp(word, "--all") == 0 || strcmp(word, "-a") == 0) && names(words, "[--all]"))
        words->all = true;
    else if ((strcmp(word, "--follow") == 0 || strcmp(word, "-f") == 0) &&
             names(words, "[--follow]"))
        words->follow = true;
    else if (strcmp(word, "--once") == 0 && names(words, "[--once]"))
        words->once = true;
    else if (strcmp(word, "--native") == 0 && names(words, "[--native]"))
        words->native = true;
    else if (strcmp(word, "--sig-proxy") == 0 && names(words, "[--sig-proxy]"))
        words->sig_proxy = true;
    else
        return false;
    return true;
}

/* An option with a value, if the command takes it. */
struct valued {
    const char *option, *value; /* value: NULL if it is none of them */
};

static struct valued take_value(const struct control_words *words, int argc, char *const *argv,
                                int *at)
{
    static const char *const options[] = {"--job",   "--ranks", "--within", "--grace",
                                          "--since", "--twice", "--lines"};
    struct valued found = {.value = NULL};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]) && found.value == NULL; i++) {
        bool is_job = i == 0 && words->command != CONTROL_PS;
        found.option = options[i];
        if (is_job || names(words, options[i]))
            found.value = option_value(options[i], argc, argv, at);
    }
    if (found.value == NULL && names(words, "[--lines")) /* found.option is --lines */
        found.value = option_value("-n", argc, argv, at);
    return found;
}

static int take_time(struct control_words *words, const struct valued *given, struct error *err)
{
    words->has_time = true;
    if (parse_duration_ms(given->value, &words->time_ms, err) == 0)
        return 0;
    if (err != NULL)
        err->status = STATUS_USAGE;
    return error_wrap(err, "%s", given->option);
}

static int take_lines(struct control_words *words, const struct valued *given, struct error *err)
{
    words->has_lines = true;
    if (parse_int(given->value, 0, LINES_MAX, &words->lines, err) == 0)
        return 0;
    if (err != NULL)
        err->status = STATUS_USAGE;
    return error_wrap(err, "%s", given->option);
}

static int take_option(struct control_words *words, int argc, char *const *argv, int *at,
                       struct error *err)
{
    const char *word = argv[*at];
    if (take_flag(words, word))
        return 0;
    struct valued given = take_value(words, argc, argv, at);
    const char **text = NULL;
    if (given.value != NULL && strcmp(given.option, "--job") == 0)
        text = &words->job;
    else if (given.value != NULL && strcmp(given.option, "--ranks") == 0)
        text = &words->ranks;
    else if (given.value != NULL && strcmp(given.option, "--lines") == 0)
        return take_lines(words, &given, err);
    else if (given.value != NULL)
        return take_time(words, &given, err);
    if (text != NULL && *text == NULL && given.value[0] != '\0') {
        *text = given.value;
        return 0;
    }
    wrong(words, err);
    return error_wrap(err, "%s", word);
}

static int check_signal(const char *name, struct error *err)
{
    int number = signal_number(name);
    if (number == 0)
        return error_status(err, STATUS_USAGE,
                            "'%s' is not the name of a signal; expected USR1, TERM and so on",
                            name);
    if (signal_is_barred(number) && number != SIGKILL)
        return error_status(err, STATUS_USAGE,
                            "SIG%s stops or continues processes, and hvdrun does not send it",
                            signal_short_name(number));
    return 0;
}

static void no_rank(void *context, int64_t rank)
{
    (void)context, (void)rank;
}

static int check_ranks(const char *ranks, struct error *err)
{
    if (ranks == NULL || parse_ranks(ranks, INT32_MAX, no_rank, NULL, err) == 0)
        return 0;
    if (err != NULL)
        err->status = STATUS_USAGE;
    return error_wrap(err, "--ranks");
}

static int check_object(const struct control_words *words, struct error *err)
{
    struct host_list hosts = {0};
    int result = 0;
    if (!takes_object(words))
        return 0;
    if (words->object == NULL)
        return wrong(words, err);
    if (words->command == CONTROL_ADD)
        result = hosts_parse(words->object, &hosts, err);
    else if (words->command == CONTROL_SIGNAL)
        result = check_signal(words->object, err);
    else if (!name_is_safe(words->object, strlen(words->object)))
        result = error_status(err, STATUS_USAGE, "'%s' is not the name of a host", words->object);
    hosts_destroy(&hosts);
    return result;
}

/* With [JOB] SIGNAL, a word alone is the signal. */
static int take_operand(struct control_words *words, const char *word, struct error *err)
{
    bool may_have_job = names(words, "[JOB]") && words->job == NULL && word[0] != '\0';
    if (takes_object(words) && words->object == NULL && word[0] != '\0') {
        words->object = word;
    } else if (may_have_job && takes_object(words)) {
        words->job = words->object;
        words->object = word;
    } else if (may_have_job) {
        words->job = word;
    } else {
        wrong(words, err);
        return word[0] == '\0' ? error_wrap(err, "an argument is empty")
                               : error_wrap(err, "unexpected '%s'", word);
    }
    return 0;
}

int control_words_parse(int argc, char *const *argv, struct control_words *out, struct error *err)
{
    *out = (struct control_words){.command = CONTROL_COMMANDS};
    if (argc > 1)
        out->command = find_command(argv[1]);
    if (out->command == CONTROL_COMMANDS)
        return 0;
    for (int i = 2; i < argc; i++) {
        int result = argv[i][0] == '-' ? take_option(out, argc, argv, &i, err)
                                       : take_operand(out, argv[i], err);
        if (result < 0)
            return -1;
    }
    if (!out->help && (check_object(out, err) < 0 || check_ranks(out->ranks, err) < 0))
        return -1;
    return 1;
}

void control_words_help(struct buf *out)
{
    buf_puts(out, "Commands for your jobs on this machine:\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        char line[128];
        snprintf(line, sizeof(line), "hvdrun %s %s", control_forms[i].word,
                 control_forms[i].operands);
        buf_printf(out, "  %-50s  %s\n", line, control_forms[i].help);
    }
    buf_puts(out, CONTROL_WHICH_JOB "\n" CONTROL_STATUSES "\n");
}
