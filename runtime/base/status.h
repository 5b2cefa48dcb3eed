/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exit statuses that the launcher uses for its own verdicts. All others come from the job. This
 * is the only list, and lint.docs compares docs/exit-status.md with it.
 */
#pragma once

#define STATUS_LIST(X)                                                                     \
    X(STATUS_USAGE, 2, "an error in the command line, a configuration file or a hostfile") \
    X(STATUS_HANG, 119, "the job hangs: --hang-timeout or --expect")                       \
    X(STATUS_REQUEUED, 120, "hvdrun requeued the scheduler's job")                         \
    X(STATUS_NODE_LOST, 121, "an agent or its node was lost")                              \
    X(STATUS_START_TIMEOUT, 122, "the job did not start within --start-timeout")           \
    X(STATUS_NO_SLOTS, 123, "too few slots for the requested ranks")                       \
    X(STATUS_TIMEOUT, 124, "the job ran longer than --timeout")                            \
    X(STATUS_LAUNCHER, 125, "the launcher itself failed")                                  \
    X(STATUS_NOT_EXECUTABLE, 126, "the program could not be executed")                     \
    X(STATUS_NOT_FOUND, 127, "the program was not found")

enum status {
#define STATUS_ENUM(name, value, text) name = value,
    STATUS_LIST(STATUS_ENUM)
#undef STATUS_ENUM
};
