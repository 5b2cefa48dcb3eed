/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handwritten digits of examples/data: images of 8 x 8 cells, and the digit that each one
 * shows.
 *
 * The split is fixed: every fifth image is held out and never used for training, so that all runs
 * are tested with the same images.
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

/* Looks for examples/data/digits.csv in the folder of the running program and in those above it,
 * then in the source tree of the build. NULL: it is in none of them. The caller frees the path. */
char *dataset_find(void);

const unsigned char *dataset_image(const struct dataset *data, size_t index);
