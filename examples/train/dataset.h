/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handwritten digits of examples/data: images of 8 x 8 cells and the digit each one shows.
 *
 * The split is fixed: every fifth image is held out and never trained on, so that all runs are
 * measured on the same images.
 */
#pragma once

#include <stddef.h>

#define DIGIT_PIXELS 64
#define DIGIT_CLASSES 10

struct dataset {
    size_t train_count, test_count;
    /* owned; the training images first, then the held-out ones; DIGIT_PIXELS bytes of 0..16 each */
    unsigned char *pixels;
    unsigned char *labels; /* owned; 0..9 */
};

/* Reads the CSV file. On failure prints one line to stderr, leaves `data` empty and returns -1. */
int dataset_load(struct dataset *data, const char *path);
void dataset_destroy(struct dataset *data);

/* Looks for examples/data/digits.csv beside and above the running program, then in the source tree
 * it was built from. NULL when there is none; the caller frees the path. */
char *dataset_find(void);

const unsigned char *dataset_image(const struct dataset *data, size_t index);
