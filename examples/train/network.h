/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A multilayer perceptron for digits: 64 inputs, one hidden layer (tanh), 10 outputs (softmax),
 * cross-entropy loss. All parameters are one array, and so is a gradient, which is what makes one
 * allreduce per step possible. Everything is double, so that the order in which ranks add up
 * hardly shows in the result. Knows nothing of MPI.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dataset.h"

#define HIDDEN_UNITS 64

struct network;

/* The same seed gives the same start on every rank. NULL when memory is short. */
struct network *network_create(uint64_t seed);
void network_destroy(struct network *network);

size_t network_parameter_count(void);

/* Adds the gradient of one image to `gradient` (network_parameter_count() numbers) and returns its
 * loss. */
double network_backward(const struct network *network, const unsigned char *image, int label,
                        double *gradient);

/* The loss of one image; `*guess` is the digit the network takes it for. */
double network_loss(const struct network *network, const unsigned char *image, int label,
                    int *guess);

/* One step of gradient descent with momentum along the mean gradient, which is `gradient` times
 * `scale`. */
void network_step(struct network *network, const double *gradient, double scale, double rate);

/* splitmix64: a small generator whose sequence depends on `*state` alone. */
uint64_t random_next(uint64_t *state);
