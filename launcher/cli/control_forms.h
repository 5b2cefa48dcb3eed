/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that show jobs and talk to them: their words, operands and help. */
#pragma once

/* A command takes the options that its operands name, and --help. It takes --job JOB, unless JOB is
 * one of its operands or it is about all jobs. */
/* clang-format off */
#define CONTROL_COMMAND_LIST(X)                                                                    \
    X(CONTROL_PS,      "ps",      "[--all] [--json]",         "List your running jobs; --all or -a: also those that have ended") \
    X(CONTROL_STATUS,  "status",  "[JOB] [--json]",           "Show the state of a job, its hosts and ranks, or how it ended") \
    X(CONTROL_TOP,     "top",     "[JOB] [--once] [--json]",  "Watch what the ranks and hosts of a job use; ranks that differ come first; --once: print it and exit") \
    X(CONTROL_STACKS,  "stacks",  "[JOB] [--ranks LIST] [--native] [--twice TIME] [--json]", "Show where the ranks of a job are, as one tree; --native: frames of C code too; --twice: again after TIME, and which ranks have moved") \
    X(CONTROL_EXPLAIN, "explain", "[JOB] [--json]",           "Tell why a job failed: what happened first, where, what followed, what to do; JOB can be a folder of --evidence") \
    X(CONTROL_LOGS,    "logs",    "[JOB] [--follow] [--ranks LIST] [--since TIME] [--lines N] [--json]", "Show the output of a job; -f: follow it; -n: only the last lines; --since: of the last TIME") \
    X(CONTROL_ATTACH,  "attach",  "[JOB] [--sig-proxy] [--json]",      "Show the output of a job and follow it; Ctrl-C leaves the job running") \
    X(CONTROL_WAIT,    "wait",    "[JOB] [--json]",           "Wait for the end of a job, and exit with its status") \
    X(CONTROL_STOP,    "stop",    "[JOB] [--grace TIME] [--json]", "End a job as Ctrl-C does, and wait for its end") \
    X(CONTROL_SIGNAL,  "signal",  "[JOB] SIGNAL [--ranks LIST] [--json]", "Send a signal to all ranks of a job, or to some") \
    X(CONTROL_DRAIN,   "drain",   "HOST [--within TIME] [--json]", "Drain a host of an elastic job: it leaves within TIME") \
    X(CONTROL_UNDRAIN, "undrain", "HOST [--json]",            "Let an elastic job use a drained host again") \
    X(CONTROL_ADD,     "add",     "HOSTS [--json]",           "Add hosts to an elastic job, as in d:4,e:2")
/* clang-format on */

#define CONTROL_WHICH_JOB                                                                 \
    "If you have several running jobs, give JOB, or --job JOB with the other commands.\n" \
    "JOB is the job's id, the beginning of its id or of the number at its end,\n"         \
    "or the path of its control socket."
#define CONTROL_STATUSES                                                                          \
    "Exit status: 0; 2 for an error in the command line; 1 if the job does not exist or "         \
    "refuses.\n"                                                                                  \
    "The exit status of wait and attach is that of the job; 125 if the job does not exist or is " \
    "lost."

enum control_command {
#define CONTROL_ENUM(name, word, operands, help) name,
    CONTROL_COMMAND_LIST(CONTROL_ENUM)
#undef CONTROL_ENUM
        CONTROL_COMMANDS
};

struct control_form { /* a row of CONTROL_COMMAND_LIST */
    const char *word, *operands, *help;
};

extern const struct control_form control_forms[CONTROL_COMMANDS];
