/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A multilayer perceptron for digits: 64 inputs, one hidden layer (tanh), 10 outputs (softmax),
 * cross-entropy loss. All parameters are one array, and so is a gradient, so that one allreduce per
 * step is enough. Everything is double, so that the order of the additions hardly changes the
 * result. This file knows nothing of other ranks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dataset.h"

#define HIDDEN_UNITS 64

struct network;

/* The same seed gives the same first weights on every rank. NULL: out of memory. */
struct network *network_create(uint64_t seed);
void network_destroy(struct network *network);

size_t network_parameter_count(void);

/* A network is one block of memory of this size, without pointers. */
size_t network_bytes(void);

/* Adds the gradient of one image to `gradient` (network_parameter_count() numbers) and returns its
 * loss. */
double network_backward(const struct network *network, const unsigned char *image, int label,
                        double *gradient);

/* Returns the loss of one image. `*guess` is the digit that the network recognises. */
double network_loss(const struct network *network, const unsigned char *image, int label,
                    int *guess);

/* One step of gradient descent with momentum. The mean gradient is `gradient` times `scale`. */
void network_step(struct network *network, const double *gradient, double scale, double rate);

/* splitmix64: a small generator whose sequence depends on `*state` alone. */
uint64_t random_next(uint64_t *state);
