/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one error value of the tree.
 *
 * A function that can fail takes `struct error *err` as its last argument. It fills the error once,
 * where the failure happens, and returns -1 (or NULL). Callers may add context with error_wrap(),
 * at most once per layer. Only main (or the top of the agent) prints the error.
 *
 * The text is one line: what failed, the cause, the remedy. `status` is the launcher's exit status,
 * unless other code decides otherwise. 0: none yet (see docs/exit-status.md).
 */
#pragma once

#define ERROR_TEXT_MAX 1024

struct error {
    int status;
    int errnum; /* errno at the place of failure; 0: none */
    char text[ERROR_TEXT_MAX];
};

#define ERROR_INIT \
    {              \
        .text = "" \
    }

/* The same where it happens often: it does not write the whole text. */
static inline void error_init(struct error *err)
{
    err->status = err->errnum = 0;
    err->text[0] = '\0';
}

/* Fills `err` (which may be NULL) and returns -1, for `return error_set(...)`. */
int error_set(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As error_set, with an exit status from base/status.h. */
int error_status(struct error *err, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with STATUS_USAGE: what a user wrote is wrong. */
int error_usage(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As error_set, and appends ": " and the text of `errnum`. */
int error_errno(struct error *err, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the text. Returns -1. */
int error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As error_wrap, and the status becomes STATUS_USAGE. */
int error_wrap_usage(struct error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
