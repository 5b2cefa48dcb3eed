/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command_line.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/strv.h"
#include "cli/flags.h"
#include "cli/sources.h"
#include "model/env/rank_variables.h"
#include "model/env/scrub.h"
#include "model/settings/settings.h"

/* Turns -x, [env] and --env-file into pairs NAME=VALUE. model/env/scrub.h says what they mean. */

#define FILE_LIMIT ((size_t)1 << 20)

/* A variable that chose the controller. */
static bool is_in_force(const struct settings *settings, const char *text, size_t length)
{
    const char *place = settings_place(settings, OPT_controller);
    return strlen(place) == length && memcmp(place, text, length) == 0;
}

/* Adds the variables of each -x in `settings` to `env`. A -x without effect adds a line to
 * `warnings`. */
static int env_collect(const struct settings *settings, char *const *envp, struct strv *env,
                       struct strv *warnings, struct error *err)
{
    for (size_t i = 0; i < settings->env.count; i++) {
        const char *text = settings->env.items[i];
        int found = env_spec_apply(text, envp, env, err);
        if (found < 0)
            return error_wrap(err, "-x");
        size_t length = strcspn(text, "=");
        if (rank_variable_is_firm(text, length) && !is_in_force(settings, text, length))
            strv_printf(warnings, "-x %.*s has no effect: hvdrun sets it for each worker",
                        (int)length, text);
        else if (found == 0)
            strv_printf(warnings, "-x %s has no effect: the variable is not set", text);
    }
    return 0;
}

static int read_file(const char *path, struct strv *env, struct error *err)
{
    struct buf bytes AUTO_BUF = BUF_INIT(FILE_LIMIT);
    if (fd_read_file(path, &bytes, err) == 0)
        return env_file_parse(buf_text(&bytes), bytes.length, path, env, err);
    return error_wrap_usage(err, "--env-file");
}

/* Reads the files of settings.env_file and then applies settings.env. Afterwards settings.env has
 * only pairs. */
static int env_collect_job(struct settings *settings, char *const *envp, struct strv *warnings,
                           struct error *err)
{
    struct strv env AUTO_STRV = STRV_INIT;
    for (size_t i = 0; i < settings->env_file.count; i++) {
        if (read_file(settings->env_file.items[i], &env, err) < 0)
            return -1;
    }
    if (env_collect(settings, envp, &env, warnings, err) < 0)
        return -1;
    strv_destroy(&settings->env);
    settings->env = env;
    env = (struct strv)STRV_INIT;
    return 0;
}

/* The command line. */

#define LINE_MAX_BYTES ((size_t)1 << 17)
#define USAGE "usage: hvdrun [options] program [arguments]; 'hvdrun --help' lists the options"

/* Applies all that can be applied. Mistakes after the first one go to `more`. */
static int apply_flags(const struct flag_list *flags, struct settings *settings, struct strv *more,
                       struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < flags->count; i++) {
        const struct flag *flag = &flags->items[i];
        struct error wrong = ERROR_INIT;
        if (settings_set(settings, flag->id, flag->text, SOURCE_FLAG, flag->typed, &wrong) == 0)
            continue;
        if (result < 0)
            strv_add(more, wrong.text);
        else
            error_usage(err, "%s", wrong.text);
        result = -1;
    }
    return result;
}

/* After mistakes in the grammar: wrong values too, and then the line as hvdrun wants it. */
static void complete_mistakes(const struct flags *flags, struct command_line *out)
{
    struct buf line AUTO_BUF = BUF_INIT(LINE_MAX_BYTES);
    struct settings settings;
    bool right = true;
    settings_init(&settings);
    for (size_t i = 0; i < flags->count; i++) {
        struct error wrong = ERROR_INIT;
        struct strv more = STRV_INIT;
        if (apply_flags(&flags->sections[i].flags, &settings, &more, &wrong) < 0) {
            strv_add(&out->more, wrong.text);
            strv_copy(&out->more, strv_items(&more));
            right = false;
        }
        strv_destroy(&more);
    }
    settings_destroy(&settings);
    if (right && rewrite_text(&flags->rewrite, &line))
        strv_printf(&out->more, "write: %s", buf_text(&line));
}

/* The value that the flags give to an option. NULL: they do not set it. */
static const char *last_text(const struct flag_list *flags, enum option_id id)
{
    for (size_t i = flags->count; i > 0; i--) {
        if (flags->items[i - 1].id == id)
            return flags->items[i - 1].text;
    }
    return NULL;
}

/* `-v` (or -vv) alone prints the version, as with horovodrun. */
static bool is_lone_v(const struct flags *flags)
{
    const struct section *section = &flags->sections[0];
    for (size_t i = 0; i < section->flags.count; i++) {
        if (strcmp(section->flags.items[i].typed, "-v") != 0)
            return false;
    }
    return section->flags.count > 0 && section->argv.count == 0;
}

/* --help, --version and --check-build run nothing, so they read no file and check nothing else. */
static bool asks_about(const struct flags *flags, bool check, struct settings *settings)
{
    static const enum option_id questions[] = {OPT_help, OPT_version, OPT_check_build};
    bool any = false;
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        const char *text = last_text(&flags->sections[0].flags, questions[i]);
        if (text != NULL &&
            settings_set(settings, questions[i], text, SOURCE_FLAG, text, NULL) == 0)
            any = true;
    }
    if (!check && is_lone_v(flags)) {
        settings->version = true;
        return true;
    }
    return any && (settings->help || settings->version || settings->check_build);
}

/* Applies everything that flags override, lowest precedence first. */
static int apply_sources(const struct flag_list *flags, char *const *envp, struct command_line *out,
                         struct error *err)
{
    char variable[OPTION_NAME_MAX];
    const char *file = last_text(flags, OPT_config_file);
    if (file == NULL)
        file = env_value(envp, option_variable(OPT_config_file, variable));
    if (config_file_user(envp, &out->settings, err) < 0)
        return -1;
    if (file != NULL && *file != '\0' && config_file_named(file, &out->settings, err) < 0)
        return -1;
    return env_options_apply(envp, &out->settings, &out->warnings, err);
}

/* Horovod's own variables choose the controller too. A rank of another job has inherited them from
 * its launcher, and not from the user. Horovod judges all other values itself. */
static int apply_controller(char *const *envp, struct settings *settings, struct error *err)
{
    static const char *const names[] = {"HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS"};
    const char *value = NULL, *name = NULL;
    enum setting_source source = SOURCE_DEFAULT;
    for (size_t i = 0; i < 2 && value == NULL; i++) {
        name = names[i];
        value = strv_env_get(&settings->env, name);
        source = value != NULL ? SOURCE_FLAG : SOURCE_ENVIRONMENT;
        if (value == NULL && env_value(envp, "HVDRUN_RANK") == NULL)
            value = env_value(envp, name);
    }
    if (value == NULL || (strcasecmp(value, "mpi") != 0 && strcasecmp(value, "gloo") != 0))
        return 0;
    const char *word = value[0] == 'm' || value[0] == 'M' ? "mpi" : "gloo";
    if (settings_source(settings, OPT_controller) < source)
        return settings_set(settings, OPT_controller, word, source, name, err);
    return 0;
}

/* Applies the flags after a ':', which belong to one program. */
static int apply_app_flags(const struct flag_list *flags, struct settings *settings,
                           struct strv *more, struct error *err)
{
    for (size_t i = 0; i < flags->count; i++) {
        const struct flag *flag = &flags->items[i];
        if ((option_info(flag->id)->flags & FLAG_APP) == 0)
            return error_usage(err, "%s applies to the whole job: put it before the first program",
                               flag->typed);
    }
    return apply_flags(flags, settings, more, err);
}

static int add_app(struct section *section, bool first, char *const *envp, struct command_line *out,
                   struct error *err)
{
    struct app *app = app_list_add(&out->apps);
    struct settings own;
    app->argv = section->argv;
    section->argv = (struct strv)STRV_INIT;
    if (first)
        return 0; /* the flags of the first program belong to the job */
    settings_init(&own);
    int rc = apply_app_flags(&section->flags, &own, &out->more, err);
    if (rc == 0)
        rc = env_collect(&own, envp, &app->env, &out->warnings, err);
    app->np = (int)own.np;
    app->wdir = own.wdir;
    own.wdir = NULL;
    settings_destroy(&own);
    return rc;
}

/* Sets the number of ranks of each program. That of the first one is -np, which must be a flag if
 * there are several programs. settings.np becomes the sum. */
static int count_apps(struct command_line *out, struct error *err)
{
    struct settings *settings = &out->settings;
    bool several = out->apps.count > 1;
    bool flag = settings_source(settings, OPT_np) == SOURCE_FLAG;
    out->apps.items[0].np = several && !flag ? 0 : (int)settings->np;
    if (!several)
        return 0;
    int64_t sum = 0;
    for (size_t i = 0; i < out->apps.count; i++) {
        const struct app *app = &out->apps.items[i];
        if (app->np == 0)
            return error_usage(err, "with several programs each needs its own -np; '%s' has none",
                               app->argv.items[0]);
        sum += app->np;
    }
    if (sum > 1000000)
        return error_usage(err, "%lld workers are too many: at most 1000000", (long long)sum);
    settings->np = sum;
    return 0;
}

/* If several sources name hosts, that of the highest precedence wins. Two ways in one source are an
 * error. */
static int choose_hosts(struct settings *settings, struct error *err)
{
    enum setting_source strongest = SOURCE_DEFAULT;
    enum option_id chosen = OPT_TOTAL;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < OPT_TOTAL; i++) {
            enum option_id id = (enum option_id)i;
            enum setting_source source = settings_source(settings, id);
            bool names_hosts = (option_info(id)->flags & FLAG_HOSTS) != 0;
            if (!names_hosts || source == SOURCE_DEFAULT)
                continue;
            if (pass == 0)
                strongest = source > strongest ? source : strongest;
            else if (source < strongest)
                settings_reset(settings, id);
            else if (chosen == OPT_TOTAL)
                chosen = id;
            else
                return error_usage(err, "%s and %s contradict each other: give one",
                                   settings_place(settings, chosen), settings_place(settings, id));
        }
    }
    return 0;
}

static int check_numbers(const struct settings *settings, struct error *err)
{
    int64_t np = settings->np, min = settings->min_np, max = settings->max_np;
    if (min > 0 && np > 0 && min > np)
        return error_usage(err, "--min-np %lld is more than -np %lld", (long long)min,
                           (long long)np);
    if (max > 0 && np > max)
        return error_usage(err, "-np %lld is more than --max-np %lld", (long long)np,
                           (long long)max);
    if (min > 0 && max > 0 && min > max)
        return error_usage(err, "--min-np %lld is more than --max-np %lld", (long long)min,
                           (long long)max);
    return 0;
}

/* Who gives --spares believes to be safe. Only flags count, because a file is for many jobs.
 * --on-failure stop is what a job does that is not elastic. */
static void warn_of_elastic_options(struct command_line *out)
{
    struct buf names AUTO_BUF = BUF_INIT(1024);
    size_t count = 0;
    if (settings_is_elastic(&out->settings) || out->check.wanted)
        return;
    for (int i = 0; i < OPT_TOTAL; i++) {
        enum option_id id = (enum option_id)i;
        if (option_info(id)->group == GROUP_ELASTIC && id != OPT_on_failure &&
            settings_source(&out->settings, id) == SOURCE_FLAG)
            buf_printf(&names, "%s%s", count++ > 0 ? ", " : "", settings_place(&out->settings, id));
    }
    if (count > 0)
        strv_printf(
            &out->warnings,
            "%s %s no effect, because the job is not elastic; with --min-np N it continues with "
            "N ranks or more",
            buf_text(&names), count == 1 ? "has" : "have");
}

/* `err` has the first mistake already if not `right`. */
static int translate(struct flags *flags, bool right, char *const *envp, struct command_line *out,
                     struct error *err)
{
    struct line line = {.words = STRV_INIT};
    struct error wrong = ERROR_INIT;
    int rc = out->check.wanted ? 0 : launcher_line_take(flags, envp, &line, &wrong);
    if (rc < 0 && right)
        error_usage(err, "%s", wrong.text);
    else if (rc < 0)
        strv_add(&out->more, wrong.text);
    strv_copy(&out->more, strv_items(&line.more));
    strv_copy(&out->warnings, strv_items(&line.warnings));
    out->nodes = line.nodes;
    out->line_help = line.help;
    out->own_address = line.own_address;
    line.help = line.own_address = NULL;
    line_destroy(&line);
    return rc;
}

static int compose(struct flags *flags, char *const *envp, struct command_line *out,
                   struct error *err)
{
    const struct section *first = &flags->sections[0];
    if (asks_about(flags, out->check.wanted, &out->settings)) {
        out->help_all = first->argv.count == 1 && strcmp(first->argv.items[0], "all") == 0;
        return 0;
    }
    if (apply_sources(&first->flags, envp, out, err) < 0 ||
        apply_flags(&first->flags, &out->settings, &out->more, err) < 0 ||
        apply_controller(envp, &out->settings, err) < 0)
        return -1;
    if (out->settings.show_config)
        return choose_hosts(&out->settings, err) < 0 ? -1 : check_numbers(&out->settings, err);
    if (out->check.wanted && first->argv.count > 0)
        return check_words_refuse(first->argv.items[0], err);
    if (out->check.wanted)
        return choose_hosts(&out->settings, err);
    if (first->argv.count == 0)
        return error_usage(err, "no program given; %s", USAGE);
    for (size_t i = 0; i < flags->count; i++) {
        if (add_app(&flags->sections[i], i == 0, envp, out, err) < 0)
            return -1;
    }
    if (env_collect_job(&out->settings, envp, &out->warnings, err) < 0 || count_apps(out, err) < 0)
        return -1;
    warn_of_elastic_options(out);
    return choose_hosts(&out->settings, err) < 0 ? -1 : check_numbers(&out->settings, err);
}

int command_line_parse(int argc, char *const *argv, char *const *envp, struct command_line *out,
                       struct error *err)
{
    struct flags flags;
    const char *launcher = launcher_line_name(argv[0]);
    char **words AUTO_FREE = mem_array((size_t)argc + 2, sizeof(*words));
    words[0] = argv[0];
    words[1] = (char *)launcher;
    memcpy(words + 1 + (launcher != NULL), argv + 1, ((size_t)argc - 1) * sizeof(*words));
    *out = (struct command_line){.warnings = STRV_INIT, .more = STRV_INIT};
    settings_init(&out->settings);
    argc = check_words_take(words, &out->check);
    int rc = flags_scan(argc, words, &flags, err);
    out->warnings = flags.warnings;
    flags.warnings = (struct strv)STRV_INIT;
    strv_copy(&out->more, strv_items(&flags.more));
    if (translate(&flags, rc == 0, envp, out, err) < 0)
        rc = -1;
    if (rc < 0)
        complete_mistakes(&flags, out);
    if (rc == 0)
        rc = compose(&flags, envp, out, err);
    /* the user's words may contain line breaks or terminal escapes */
    if (rc < 0 && err != NULL)
        plain_line(err->text, '?');
    for (size_t i = 0; i < out->warnings.count; i++)
        plain_line(out->warnings.items[i], '?');
    for (size_t i = 0; i < out->more.count; i++)
        plain_line(out->more.items[i], '?');
    flags_destroy(&flags);
    return rc;
}

void command_line_destroy(struct command_line *line)
{
    settings_destroy(&line->settings);
    app_list_destroy(&line->apps);
    strv_destroy(&line->warnings);
    strv_destroy(&line->more);
    free(line->nodes.meeting_host);
    free(line->own_address);
    free(line->line_help);
    free(line->nodes.meeting_id);
    free(line->nodes.copy);
}
