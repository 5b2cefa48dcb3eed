/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that show jobs and talk to them: their words, operands, options and help, and the
 * command lines with them. The command must be the very first argument: `hvdrun -- status` and
 * `hvdrun ./status` start a program with that name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* clang-format off */
#define CONTROL_COMMAND_LIST(X)                                                                    \
    X(CONTROL_PS,      "ps",      "",             "List your running jobs")                        \
    X(CONTROL_STATUS,  "status",  "[JOB]",        "Show the state of a job, its hosts and ranks, or how it ended") \
    X(CONTROL_TOP,     "top",     "[JOB]",        "Watch what the ranks and hosts of a job use; ranks that differ come first") \
    X(CONTROL_STACKS,  "stacks",  "[JOB]",        "Show where the ranks of a job are, as one tree") \
    X(CONTROL_DEBUG,   "debug",   "[JOB]",        "Open a debugger on a rank, on its host; Ctrl-C is for the debugger") \
    X(CONTROL_SHELL,   "shell",   "[JOB]",        "Open a shell on a host of a job, or run a command there; with --rank as that rank was started") \
    X(CONTROL_PMIX,    "pmix",    "[JOB]",        "Serve the process table of a job to PMIx tools of this user, until the job ends") \
    X(CONTROL_EXPLAIN, "explain", "[JOB]",        "Tell why a job failed: what happened first, where, what followed, what to do; JOB can be a folder of --evidence") \
    X(CONTROL_LOGS,    "logs",    "[JOB]",        "Show the output of a job")                      \
    X(CONTROL_ATTACH,  "attach",  "[JOB]",        "Show the output of a job and follow it; Ctrl-C leaves the job running") \
    X(CONTROL_WAIT,    "wait",    "[JOB]",        "Wait for the end of a job, and exit with its status") \
    X(CONTROL_STOP,    "stop",    "[JOB]",        "End a job as Ctrl-C does, and wait for its end") \
    X(CONTROL_SIGNAL,  "signal",  "[JOB] SIGNAL", "Send a signal to all ranks of a job, or to some") \
    X(CONTROL_DRAIN,   "drain",   "HOST",         "Drain a host of an elastic job")                \
    X(CONTROL_UNDRAIN, "undrain", "HOST",         "Let an elastic job use a drained host again")   \
    X(CONTROL_ADD,     "add",     "HOSTS",        "Add hosts to an elastic job, as in d:4,e:2") \
    X(CONTROL_WARM,    "warm",    "start|list|stop", "Keep the Python interpreters of jobs with --warm on this host, for your next jobs")

/* name, word, letter or "", value or "", the commands that take it, help */
#define CONTROL_OPTION_LIST(X)                                                                     \
    X(ALL,       "--all",       "-a", "",     IN(PS),                            "Also list jobs that have ended") \
    X(QUIET,     "--quiet",     "-q", "",     IN(PS),                            "Print only the ids of the jobs") \
    X(USERS,     "--all-users", "",   "",     IN(PS),                            "List the jobs of all users; for root") \
    X(NAMES,     "--names",     "",   "",     IN(PS),                            "With --quiet: print the names of the jobs, too") \
    X(ONCE,      "--once",      "",   "",     IN(TOP),                           "Print the table once and exit") \
    X(FOLLOW,    "--follow",    "-f", "",     IN(LOGS),                          "Go on with new output until the job ends") \
    X(RANKS,     "--ranks",     "",   "LIST", IN(STACKS) | IN(LOGS) | IN(SIGNAL), "Only these ranks, as in 0,4-7") \
    X(RANK,      "--rank",      "",   "N",    IN(DEBUG) | IN(SHELL),             "This rank") \
    X(HOST,      "--host",      "",   "HOST", IN(SHELL),                         "This host, with the environment of its agent") \
    X(WITH,      "--with",      "",   "COMMAND", IN(DEBUG),                      "gdb, lldb, or a command with {pid}, as in 'strace -f -p {pid}'. Default: gdb, else lldb") \
    X(CONTINUE,  "--continue",  "",   "",     IN(DEBUG),                         "No debugger: let the rank, or all, go on that --stop-at-start holds") \
    X(SINCE,     "--since",     "",   "TIME", IN(LOGS),                          "Only the lines of the last TIME") \
    X(LINES,     "--lines",     "-n", "N",    IN(LOGS) | IN(ATTACH),             "Only the last N lines, or 'all'; attach begins with 20") \
    X(NATIVE,    "--native",    "",   "",     IN(STACKS),                        "Show frames of C code, too") \
    X(TWICE,     "--twice",     "",   "TIME", IN(STACKS),                        "Look again after TIME, and show which ranks have moved") \
    X(SIG_PROXY, "--sig-proxy", "",   "",     IN(ATTACH),                        "Ctrl-C ends the job") \
    X(GRACE,     "--grace",     "",   "TIME", IN(STOP),                          "How long the ranks may take to exit") \
    X(WITHIN,    "--within",    "",   "TIME", IN(DRAIN),                         "How long the host may take to leave") \
    X(IDLE,      "--idle",      "",   "TIME", IN(WARM),                          "start: end an interpreter that no job has used for TIME; the default is 1h") \
    X(MEMORY,    "--memory",    "",   "MIB",  IN(WARM),                          "start: how much memory all of them may use, in MiB; the default is an eighth of that of the host") \
    X(JSON,      "--json",      "",   "",     CONTROL_EVERY & ~(IN(WARM) | IN(DEBUG) | IN(SHELL) | IN(PMIX)), "Print JSON") \
    X(JOB,       "--job",       "",   "JOB",  CONTROL_EVERY & ~(IN(PS) | IN(WARM)), "The job, if you have several running jobs") \
    X(SLURM_JOB, "--slurm-job", "",   "ID",   CONTROL_EVERY & ~IN(WARM),         "The job of hvdrun in this Slurm job, on its first node, through srun") \
    X(HELP,      "--help",      "-h", "",     CONTROL_EVERY,                     "Print this help")
/* clang-format on */

#define CONTROL_JOB                                                                                \
    "the job's name, its id, the beginning of its id or of the number at its end, or the path of " \
    "its "                                                                                         \
    "control socket"

enum control_command {
#define CONTROL_ENUM(name, word, operands, help) name,
    CONTROL_COMMAND_LIST(CONTROL_ENUM)
#undef CONTROL_ENUM
        CONTROL_COMMANDS
};

enum control_option {
#define CONTROL_ENUM(name, word, letter, value, commands, help) CONTROL_OPTION_##name,
    CONTROL_OPTION_LIST(CONTROL_ENUM)
#undef CONTROL_ENUM
        CONTROL_OPTIONS
};

struct control_form { /* a row of CONTROL_COMMAND_LIST */
    const char *word, *operands, *help;
};

struct control_option_form { /* a row of CONTROL_OPTION_LIST */
    const char *word, *letter, *value;
    unsigned commands; /* bits: 1 << enum control_command */
    const char *help;
};

/* First words that need no job: those of cli/tools.def. The last one has no word. */
extern const struct control_form tool_forms[];
const struct control_form *tool_find(const char *word); /* NULL: it is none */

/* What `hvdrun check` takes besides options of a job. The last one has no word. */
extern const struct control_option_form check_options[];

extern const struct control_form control_forms[CONTROL_COMMANDS];
extern const struct control_option_form control_option_forms[CONTROL_OPTIONS];

bool control_takes_option(enum control_command command, enum control_option option);
bool control_takes_job(enum control_command command); /* as an operand */

/* Appends "logs [JOB] [--follow] ...": the command with its operands and options. --slurm-job
 * and --help, which all commands have, are not among them, nor is --job if JOB is an operand. */
void control_put_usage(enum control_command command, struct buf *out);

struct control_words { /* all text is borrowed from argv */
    enum control_command command;
    const char *object;      /* HOST, HOSTS, SIGNAL or start, list, stop; NULL with the others */
    const char *job;         /* NULL: the only running job */
    const char *ranks;       /* NULL: all */
    const char *slurm_job;   /* a number; NULL: the job is here */
    const char *host, *with; /* of shell and debug; NULL */
    int64_t rank;            /* likewise; -1 */
    char *const *argv;       /* of shell, behind "--"; NULL-ended; NULL: none */
    bool all, all_users, quiet, names, json, help;
    bool follow, sig_proxy, once, native, continues;
    bool has_time; /* --within, --grace, --since, --twice, --idle */
    int64_t time_ms;
    bool has_lines;
    int64_t lines; /* -1: all */
    int64_t mib;   /* --memory; 0: not given */
};

/* 1: a command; 0: not a command, so the line starts a job; -1: a wrong command (STATUS_USAGE). */
int control_words_parse(int argc, char *const *argv, struct control_words *out, struct error *err);
