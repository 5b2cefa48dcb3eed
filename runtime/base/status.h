/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exit statuses that the launcher reserves for its own verdicts; everything else is the job's.
 * This list is the only one: docs/exit-status.md is checked against it by tests/lint.
 */
#pragma once

#define STATUS_LIST(X)                                                                     \
    X(STATUS_USAGE, 2, "an error in the command line, a configuration file or a hostfile") \
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
