/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/features.h"

#include <string.h>

#include "base/mem.h"

#define FEATURE(name) extern const char name##_feature[] __attribute__((weak));
#define FEATURE_COMMAND(name, command, run) extern control_run run __attribute__((weak));
#define FEATURE_CHECK(name, check) extern settings_check check __attribute__((weak));
#include "cli/features.def"
#define TOOL(feature, word, run, operands, help) extern tool_run run __attribute__((weak));
#include "cli/tools.def"
extern hosts_leave bad_hosts_leave_out __attribute__((weak));
extern line_translate torchrun_line __attribute__((weak));
extern line_meet torchrun_meet __attribute__((weak));
extern line_hosts torchrun_hosts __attribute__((weak));
extern agent_here warm_agent_here __attribute__((weak));

enum feature_id {
    FEATURE_NONE,
#define FEATURE(name) FEATURE_##name,
#include "cli/features.def"
    FEATURE_TOTAL
};

static const struct {
    const char *name, *what; /* NULL: it was left out */
} features[FEATURE_TOTAL] = {
#define FEATURE(name) [FEATURE_##name] = {#name, name##_feature},
#include "cli/features.def"
};

static const struct {
    enum feature_id feature;
    control_run *run;
} commands[CONTROL_COMMANDS] = {
#define FEATURE_COMMAND(name, command, run) [command] = {FEATURE_##name, run},
#include "cli/features.def"
};

static const char *const launchers[] = {
#define FEATURE_LINE(name, word) word,
#include "cli/features.def"
};
#define LAUNCHERS (sizeof(launchers) / sizeof(launchers[0]))

static const struct {
    enum feature_id feature;
    const char *word;
    tool_run *run;
} tools[] = {
#define TOOL(feature, word, run, operands, help) {FEATURE_##feature, word, run},
#include "cli/tools.def"
};

static const enum feature_id options[OPT_TOTAL] = {
#define FEATURE_OPTION(name, option) [OPT_##option] = FEATURE_##name,
#include "cli/features.def"
};

static settings_check *const checks[] = {
#define FEATURE_CHECK(name, check) check,
#include "cli/features.def"
};

static bool is_there(enum feature_id feature)
{
    return feature == FEATURE_NONE || features[feature].what != NULL;
}

static int left_out(enum feature_id feature, const char *who, struct error *err)
{
    return error_usage(err, "%s: this hvdrun was built without '%s' (HVDRUN_FEATURES of CMake)",
                       who, features[feature].name);
}

int features_command(enum control_command command, control_run **run, struct error *err)
{
    *run = commands[command].run;
    if (is_there(commands[command].feature))
        return 0;
    return left_out(commands[command].feature, control_forms[command].word, err);
}

int features_allow_check(struct error *err)
{
    return is_there(FEATURE_check) ? 0 : left_out(FEATURE_check, "check", err);
}

int features_tool(const char *word, tool_run **run, struct error *err)
{
    *run = NULL;
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        if (strcmp(tools[i].word, word) == 0 && !is_there(tools[i].feature))
            return left_out(tools[i].feature, word, err);
        if (strcmp(tools[i].word, word) == 0)
            *run = tools[i].run;
    }
    return 0;
}

int features_check_options(const struct settings *settings, struct error *err)
{
    for (int i = 0; i < OPT_TOTAL; i++) {
        enum option_id id = (enum option_id)i;
        if (!is_there(options[id]) && settings_source(settings, id) != SOURCE_DEFAULT)
            return left_out(options[id], settings_place(settings, id), err);
    }
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (checks[i] != NULL && checks[i](settings, err) < 0)
            return -1;
    }
    return 0;
}

int features_leave_out(const struct settings *settings, struct host_list *hosts, char **file,
                       struct buf *told, struct error *err)
{
    return bad_hosts_leave_out == NULL ? 0 : bad_hosts_leave_out(settings, hosts, file, told, err);
}

bool features_agent_here(const struct settings *settings, const char *module_dir,
                         struct transport_stream *stream)
{
    char *agent_path AUTO_FREE = mem_printf("%s/hvdrun-agent", module_dir);
    return warm_agent_here != NULL && warm_agent_here(settings, agent_path, stream);
}

bool features_has_line(const char *word)
{
    size_t i = 0;
    while (i < LAUNCHERS && strcmp(launchers[i], word) != 0)
        i++;
    return i < LAUNCHERS;
}

int features_line(char *const *typed, char *const *envp, struct line *out, struct error *err)
{
    return torchrun_line != NULL ? torchrun_line(typed, envp, out, err)
                                 : left_out(FEATURE_torchrun, typed[0], err);
}

int features_line_meet(struct command_line *line, char *const *env, struct error *err)
{
    return torchrun_meet != NULL ? torchrun_meet(line, env, err) : 0;
}

int features_line_hosts(const struct command_line *line, struct host_list *hosts, struct error *err)
{
    return torchrun_hosts != NULL ? torchrun_hosts(line, hosts, err) : 0;
}

void features_text(struct buf *out)
{
    for (int i = FEATURE_NONE + 1; i < FEATURE_TOTAL; i++) {
        bool built = is_there((enum feature_id)i);
        buf_printf(out, "    [%c] %s%s%s\n", built ? 'X' : ' ', features[i].name, built ? ": " : "",
                   built ? features[i].what : "");
    }
}
