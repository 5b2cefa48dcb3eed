/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_words.h"

#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "model/exit/signal_name.h"
#include "model/hosts/entry.h"
#include "model/hosts/hosts.h"
#include "model/plan/mapping.h"
#include "model/settings/suggest.h"

#define IN(command) (1u << CONTROL_##command)
#define CONTROL_EVERY ((1u << CONTROL_COMMANDS) - 1)

const struct control_form control_forms[CONTROL_COMMANDS] = {
#define CONTROL_ROW(name, word, operands, help) [name] = {word, operands, help},
    CONTROL_COMMAND_LIST(CONTROL_ROW)
#undef CONTROL_ROW
};

const struct control_option_form control_option_forms[CONTROL_OPTIONS] = {
#define CONTROL_ROW(name, word, letter, value, commands, help) \
    [CONTROL_OPTION_##name] = {word, letter, value, commands, help},
    CONTROL_OPTION_LIST(CONTROL_ROW)
#undef CONTROL_ROW
};

const struct control_form tool_forms[] = {
#define TOOL(feature, word, run, operands, help) {word, operands, help},
#include "cli/tools.def"
    {NULL, NULL, NULL},
};

const struct control_option_form check_options[] = {
    {"--net", "", "", 0, "Also measure how fast the hosts send to each other"},
    {"--gpu", "", "", 0, "Also check the GPUs, and test their speed if PyTorch is there"},
    {"--python", "", "PROGRAM", 0, "The Python that tests the GPUs (default: python3)"},
    {"--json", "", "", 0, "Print the results as JSON"},
    {NULL, NULL, NULL, 0, NULL},
};

const struct control_form *tool_find(const char *word)
{
    const struct control_form *tool = tool_forms;
    while (tool->word != NULL && strcmp(tool->word, word) != 0)
        tool++;
    return tool->word == NULL ? NULL : tool;
}

bool control_takes_option(enum control_command command, enum control_option option)
{
    return (control_option_forms[option].commands & 1u << command) != 0;
}

bool control_takes_job(enum control_command command)
{
    return strncmp(control_forms[command].operands, "[JOB]", 5) == 0;
}

/* The option of the command that the first `length` bytes of `word` spell. CONTROL_OPTIONS: there
 * is none. */
static enum control_option find_option(enum control_command command, const char *word,
                                       size_t length)
{
    int option = 0;
    for (; option < CONTROL_OPTIONS; option++) {
        const char *const spellings[] = {control_option_forms[option].word,
                                         control_option_forms[option].letter};
        for (size_t i = 0; i < 2; i++) {
            if (length > 0 && strlen(spellings[i]) == length &&
                memcmp(spellings[i], word, length) == 0 &&
                control_takes_option(command, (enum control_option)option))
                return (enum control_option)option;
        }
    }
    return CONTROL_OPTIONS;
}

void control_put_usage(enum control_command command, struct buf *out)
{
    const struct control_form *form = &control_forms[command];
    buf_printf(out, "%s%s%s", form->word, form->operands[0] != '\0' ? " " : "", form->operands);
    for (int i = 0; i < CONTROL_OPTION_SLURM_JOB; i++) {
        const struct control_option_form *option = &control_option_forms[i];
        bool same = i == CONTROL_OPTION_JOB && control_takes_job(command);
        if (!same && control_takes_option(command, (enum control_option)i))
            buf_printf(out, " [%s%s%s]", option->word, option->value[0] != '\0' ? " " : "",
                       option->value);
    }
    if (command == CONTROL_SHELL)
        buf_puts(out, " [-- COMMAND...]");
}

#define LINES_MAX 1000000
#define USAGE_MAX 512
#define MIB_MAX ((int64_t)1 << 30)

static enum control_command find_command(const char *word)
{
    int command = 0;
    while (command < CONTROL_COMMANDS && strcmp(control_forms[command].word, word) != 0)
        command++;
    return (enum control_command)command;
}

static bool takes_object(const struct control_words *words)
{
    const char *operands = control_forms[words->command].operands;
    return strstr(operands, "HOST") != NULL || strstr(operands, "SIGNAL") != NULL ||
           words->command == CONTROL_WARM;
}

static int wrong(const struct control_words *words, struct error *err)
{
    struct buf usage AUTO_BUF = BUF_INIT(USAGE_MAX);
    control_put_usage(words->command, &usage);
    return error_usage(err, "expected: hvdrun %s", buf_text(&usage));
}

/* Words that other programs have for an option. */
static const char *usual_word(enum control_command command, const char *word)
{
    bool lines = control_takes_option(command, CONTROL_OPTION_LINES);
    return lines && strcmp(word, "--tail") == 0 ? "--lines" : NULL;
}

static int unknown_option(const struct control_words *words, const char *word, size_t length,
                          struct error *err)
{
    char *typed AUTO_FREE = mem_strndup(word, length);
    const char *near = usual_word(words->command, typed);
    struct suggest suggest;
    suggest_init(&suggest, word, length);
    for (int i = 0; i < CONTROL_OPTIONS; i++) {
        if (control_takes_option(words->command, (enum control_option)i))
            suggest_offer(&suggest, control_option_forms[i].word);
    }
    if (near == NULL)
        near = suggest_best(&suggest);
    const char *command = control_forms[words->command].word;
    if (near != NULL)
        return error_usage(err,
                           "unknown option '%s': did you mean '%s'? 'hvdrun %s --help' lists the "
                           "options",
                           typed, near, command);
    wrong(words, err);
    return error_wrap(err, "'hvdrun %s' does not have the option '%s'", command, typed);
}

/* A text that may be given once. */
static int take_text(const struct control_words *words, const char **text, const char *option,
                     const char *value, struct error *err)
{
    if (*text == NULL && value[0] != '\0') {
        *text = value;
        return 0;
    }
    wrong(words, err);
    return error_wrap(err, "%s", option);
}

/* srun takes only the plain number of a job, which jobs of an array have, too. */
static int take_slurm_job(struct control_words *words, const char *value, struct error *err)
{
    if (value[0] != '\0' && value[strspn(value, "0123456789")] != '\0')
        return error_usage(err,
                           "--slurm-job: '%s' is not a number; 'squeue --me -o %%A' shows the "
                           "number of each job",
                           value);
    return take_text(words, &words->slurm_job, "--slurm-job", value, err);
}

/* `value` is "" if the option takes no value. */
static int apply(struct control_words *words, enum control_option option, const char *value,
                 struct error *err)
{
    const char *word = control_option_forms[option].word;
    int result = 0;
    switch (option) {
    case CONTROL_OPTION_ALL: words->all = true; break;
    case CONTROL_OPTION_QUIET: words->quiet = true; break;
    case CONTROL_OPTION_USERS: words->all_users = true; break;
    case CONTROL_OPTION_NAMES: words->names = true; break;
    case CONTROL_OPTION_ONCE: words->once = true; break;
    case CONTROL_OPTION_FOLLOW: words->follow = true; break;
    case CONTROL_OPTION_NATIVE: words->native = true; break;
    case CONTROL_OPTION_SIG_PROXY: words->sig_proxy = true; break;
    case CONTROL_OPTION_JSON: words->json = true; break;
    case CONTROL_OPTION_HELP: words->help = true; break;
    case CONTROL_OPTION_CONTINUE: words->continues = true; break;
    case CONTROL_OPTION_HOST: return take_text(words, &words->host, word, value, err);
    case CONTROL_OPTION_WITH: return take_text(words, &words->with, word, value, err);
    case CONTROL_OPTION_RANKS: return take_text(words, &words->ranks, word, value, err);
    case CONTROL_OPTION_JOB: return take_text(words, &words->job, word, value, err);
    case CONTROL_OPTION_SLURM_JOB: return take_slurm_job(words, value, err);
    case CONTROL_OPTION_RANK: result = parse_int(value, 0, INT32_MAX, &words->rank, err); break;
    case CONTROL_OPTION_MEMORY: result = parse_int(value, 1, MIB_MAX, &words->mib, err); break;
    case CONTROL_OPTION_LINES:
        words->has_lines = true;
        words->lines = -1;
        if (strcmp(value, "all") != 0)
            result = parse_int(value, 0, LINES_MAX, &words->lines, err);
        break;
    case CONTROL_OPTION_IDLE:
    case CONTROL_OPTION_SINCE:
    case CONTROL_OPTION_TWICE:
    case CONTROL_OPTION_GRACE:
    case CONTROL_OPTION_WITHIN:
        words->has_time = true;
        result = parse_duration_ms(value, &words->time_ms, err);
        break;
    case CONTROL_OPTIONS: break;
    }
    return result < 0 ? error_wrap_usage(err, "%s", word) : 0;
}

/* Takes the option at argv[*at], and moves `*at` to its value if that is the next word. */
static int take_option(struct control_words *words, int argc, char *const *argv, int *at,
                       struct error *err)
{
    const char *word = argv[*at], *value = "";
    size_t length = strcspn(word, "=");
    enum control_option option = find_option(words->command, word, length);
    if (option == CONTROL_OPTIONS)
        return unknown_option(words, word, length, err);
    bool wants_value = control_option_forms[option].value[0] != '\0';
    if (word[length] == '=' && !wants_value) {
        wrong(words, err);
        return error_wrap(err, "%s", word);
    }
    if (word[length] == '=')
        value = word + length + 1;
    else if (wants_value && *at + 1 < argc)
        value = argv[++*at];
    return apply(words, option, value, err);
}

static int check_signal(const char *name, struct error *err)
{
    int number = signal_number(name);
    if (number == 0)
        return error_usage(err, "'%s' is not the name of a signal; expected USR1, TERM and so on",
                           name);
    if (signal_is_barred(number) && number != SIGKILL)
        return error_usage(err, "SIG%s stops or continues processes, and hvdrun does not send it",
                           signal_short_name(number));
    return 0;
}

static int check_ranks(const char *ranks, struct error *err)
{
    if (ranks == NULL || parse_ranks(ranks, PLAN_SIZE_MAX - 1, NULL, NULL, err) == 0)
        return 0;
    return error_wrap_usage(err, "--ranks");
}

static int check_warm(const struct control_words *words, struct error *err)
{
    bool starts = strcmp(words->object, "start") == 0;
    if (!starts && strcmp(words->object, "list") != 0 && strcmp(words->object, "stop") != 0)
        return wrong(words, err);
    if (!starts && (words->has_time || words->mib > 0))
        return error_usage(err, "warm: --idle and --memory are for 'hvdrun warm start'");
    return 0;
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
    else if (words->command == CONTROL_WARM)
        result = check_warm(words, err);
    else if (!name_is_safe(words->object, strlen(words->object)))
        result = error_usage(err, "'%s' is not the name of a host", words->object);
    hosts_destroy(&hosts);
    return result;
}

/* With [JOB] SIGNAL, a word alone is the signal. */
static int take_operand(struct control_words *words, const char *word, struct error *err)
{
    bool may_have_job = control_takes_job(words->command) && words->job == NULL && word[0] != '\0';
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

/* Which rank or host debug and shell are about. */
static int check_place(const struct control_words *words, struct error *err)
{
    bool one = (words->rank >= 0) != (words->host != NULL);
    bool debugs = words->command == CONTROL_DEBUG && (words->rank >= 0 || words->continues);
    if ((words->command == CONTROL_SHELL && !one) || (words->command == CONTROL_DEBUG && !debugs)) {
        wrong(words, err);
        return error_wrap(err, words->command == CONTROL_SHELL ? "shell needs --rank or --host"
                                                               : "debug needs --rank");
    }
    if (words->command == CONTROL_DEBUG && words->continues && words->with != NULL)
        return error_usage(err, "debug: --continue opens no debugger --with");
    if (words->argv != NULL && words->argv[0] == NULL)
        return error_usage(err, "shell: a command must follow '--'");
    return 0;
}

int control_words_parse(int argc, char *const *argv, struct control_words *out, struct error *err)
{
    *out = (struct control_words){.command = CONTROL_COMMANDS, .rank = -1};
    if (argc > 1)
        out->command = find_command(argv[1]);
    if (out->command == CONTROL_COMMANDS)
        return 0;
    for (int i = 2; i < argc; i++) {
        if (out->command == CONTROL_SHELL && strcmp(argv[i], "--") == 0) {
            out->argv = argv + i + 1;
            break;
        }
        int result = argv[i][0] == '-' ? take_option(out, argc, argv, &i, err)
                                       : take_operand(out, argv[i], err);
        if (result < 0)
            return -1;
    }
    if (!out->help && out->names && !out->quiet)
        return error_usage(err, "ps: --names needs --quiet");
    if (!out->help && check_place(out, err) < 0)
        return -1;
    if (!out->help && (check_object(out, err) < 0 || check_ranks(out->ranks, err) < 0))
        return -1;
    return 1;
}
