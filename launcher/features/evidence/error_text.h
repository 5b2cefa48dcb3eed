/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a rank's output that say the most about its end. Pure.
 *
 * The error is the last Python exception that can end a program, or the last crash of Python after
 * it. Otherwise it is what model/exit/symptom.h finds. If that finds none, it is the last lines.
 * Some lines say nothing about an error, and are left out. PyTorch writes such lines when hvdrun
 * asks for its flight recorder, and after every asynchronous error of CUDA.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"

#define ERROR_TEXT_QUOTED 3

struct error_line {
    const char *text; /* borrowed; without the label that torch.distributed writes in front */
    size_t length;
    bool noise;
};

struct error_text {
    struct error_line *lines;
    size_t count;
    bool found;        /* false: the error could not be recognised */
    size_t names;      /* the line that names the error */
    size_t begin, end; /* the lines that are about it, without the frames of a traceback */
    size_t first;      /* of a chain of exceptions, the line that names the first one */
    size_t above;      /* where its traceback begins, or `begin` */
    size_t frame;      /* the innermost frame of the program's own files; `count`: not known */
};

/* `text` has whole lines and outlives `out`. */
void error_text_read(const char *text, struct error_text *out);
void error_text_clear(struct error_text *error);

enum error_match { ERROR_TEXT_NOT, ERROR_TEXT_NEAR, ERROR_TEXT_EXACT };

/* The line that has one of the words, which have a '|' between them. EXACT: it is about the error.
 * NEAR: it is shortly before it, or the error is not known. */
enum error_match error_text_find(const struct error_text *error, const char *words, size_t *at);

/* Adds at most ERROR_TEXT_QUOTED lines, each whole and without blanks in front: that at `at`, the
 * one that names the error, and those that explain it best. */
void error_text_quote(const struct error_text *error, size_t at, struct strv *out);

/* Where the exception was raised: "train.py:35 (load)". The caller frees it. NULL: not known. */
char *error_text_place(const struct error_text *error);
