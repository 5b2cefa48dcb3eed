/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which features this hvdrun has. cli/features.def lists all of them, with the commands and options
 * that need each. Every feature defines `const char NAME_feature[]`, one line that says what it is.
 * That and the functions of its commands are weak symbols here: NULL in a build without the
 * feature.
 */
#pragma once

#include "cli/control_jobs.h"
#include "cli/control_words.h"
#include "model/hosts/hosts.h"
#include "model/settings/line.h"
#include "model/settings/settings.h"
#include "transport/transport.h"

/* Runs a command about jobs. It blocks. What it prints goes to `out`. -1 and `err`. */
typedef int control_run(const struct job_list *list, const struct control_words *words,
                        struct buf *out, struct error *err);

/* The function of a feature that runs the command; NULL: the core does. -1: this hvdrun does not
 * have the feature. STATUS_USAGE. */
int features_command(enum control_command command, control_run **run, struct error *err);

/* Takes the words after its own, which are NULL-ended. What it prints goes to `out`. -1 and `err`.
 */
typedef int tool_run(char *const *words, struct buf *out, struct error *err);

/* The function of the first word; NULL: it is not that of a tool. -1: this hvdrun does not have the
 * feature. STATUS_USAGE. */
int features_tool(const char *word, tool_run **run, struct error *err);

/* Checks options before a job starts. -1: one of them is wrong. STATUS_USAGE. */
typedef int settings_check(const struct settings *settings, struct error *err);

/* Those of the features. */
#define FEATURE_COMMAND(name, command, run) extern control_run run;
#define FEATURE_CHECK(name, check) extern settings_check check;
#include "cli/features.def"
#define TOOL(feature, word, run, operands, help) extern tool_run run;
#include "cli/tools.def"

/* -1: `hvdrun check`, or an option that was given, needs a feature that this hvdrun does not have,
 * or the feature does not take it. STATUS_USAGE. */
int features_allow_check(struct error *err);
int features_check_options(const struct settings *settings, struct error *err);

/* An agent that runs here already takes the agent's end of a new stream. `agent_path`: that of
 * hvdrun-agent. False: none does. */
typedef bool agent_here(const struct settings *settings, const char *agent_path,
                        struct transport_stream *stream);
bool features_agent_here(const struct settings *settings, const char *module_dir,
                         struct transport_stream *stream);

/* Leaves hosts out of a job, and appends to `told` which ones and why: "FILE leaves out b (...)".
 * `file` gets its text (owned), for FILE may be a pipe; or nothing. -1: the option is wrong.
 * STATUS_USAGE. */
typedef int hosts_leave(const struct settings *settings, struct host_list *hosts, char **file,
                        struct buf *told, struct error *err);
int features_leave_out(const struct settings *settings, struct host_list *hosts, char **file,
                       struct buf *told, struct error *err);

/* Translates a line. `words` begin with the name of the launcher, `envp` is that of main(); both
 * are NULL-ended. `out` is all zero before, and destroyed by the caller in either case. -1: all
 * that is wrong. STATUS_USAGE. */
typedef int line_translate(char *const *words, char *const *envp, struct line *out,
                           struct error *err);
/* If the line is one of several copies, on other hosts: names all of them in the settings, as the
 * driver needs it, and says whether this copy dials in to it. `env` is that of the process. -1:
 * they do not come together. */
struct command_line; /* cli/command_line.h */
typedef int line_meet(struct command_line *line, char *const *env, struct error *err);
/* Looks at the hosts of the job, which are known now, and leaves those that it uses. A line that
 * dials becomes an agent here. -1: they are not what the line wants. STATUS_USAGE. */
typedef int line_hosts(const struct command_line *line, struct host_list *hosts, struct error *err);

/* Is `word` a launcher whose lines are translated? */
bool features_has_line(const char *word);
/* The functions of the launchers. */
int features_line(char *const *typed, char *const *envp, struct line *out, struct error *err);
int features_line_meet(struct command_line *line, char *const *env, struct error *err);
int features_line_hosts(const struct command_line *line, struct host_list *hosts,
                        struct error *err);

void features_text(struct buf *out); /* for --check-build: a line for each */
