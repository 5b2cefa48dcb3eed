/* SPDX-License-Identifier: Apache-2.0 */
/* See network.h. */
#include "network.h"

#include <math.h>
#include <stdlib.h>

#define MOMENTUM 0.9

/* The weights (one row per output) and biases of the layers, in their order in memory. */
struct parameters {
    double w1[HIDDEN_UNITS][DIGIT_PIXELS];
    double b1[HIDDEN_UNITS];
    double w2[DIGIT_CLASSES][HIDDEN_UNITS];
    double b2[DIGIT_CLASSES];
};

#define PARAMETER_COUNT (sizeof(struct parameters) / sizeof(double))

struct network {
    struct parameters now;
    struct parameters velocity;
};

/* The results of a forward pass, which the backward pass needs. */
struct activations {
    double input[DIGIT_PIXELS];
    double hidden[HIDDEN_UNITS];
    double output[DIGIT_CLASSES]; /* probabilities */
};

uint64_t random_next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [-range, range). */
static double random_weight(uint64_t *state, double range)
{
    double unit = (double)(random_next(state) >> 11) * 0x1p-53;
    return (2 * unit - 1) * range;
}

size_t network_parameter_count(void)
{
    return PARAMETER_COUNT;
}

size_t network_bytes(void)
{
    return sizeof(struct network);
}

struct network *network_create(uint64_t seed)
{
    struct network *network = calloc(1, sizeof *network);
    if (network == NULL)
        return NULL;
    /* this range keeps the variance of the signals the same from layer to layer */
    double range1 = sqrt(6.0 / (DIGIT_PIXELS + HIDDEN_UNITS));
    double range2 = sqrt(6.0 / (HIDDEN_UNITS + DIGIT_CLASSES));
    for (int i = 0; i < HIDDEN_UNITS; i++)
        for (int j = 0; j < DIGIT_PIXELS; j++)
            network->now.w1[i][j] = random_weight(&seed, range1);
    for (int i = 0; i < DIGIT_CLASSES; i++)
        for (int j = 0; j < HIDDEN_UNITS; j++)
            network->now.w2[i][j] = random_weight(&seed, range2);
    return network;
}

void network_destroy(struct network *network)
{
    free(network);
}

/* Turns the outputs into probabilities; subtracting the largest first keeps exp() in range. */
static void softmax(double *values, int count)
{
    double largest = values[0], sum = 0;
    for (int i = 1; i < count; i++)
        largest = fmax(largest, values[i]);
    for (int i = 0; i < count; i++) {
        values[i] = exp(values[i] - largest);
        sum += values[i];
    }
    for (int i = 0; i < count; i++)
        values[i] /= sum;
}

static void forward(const struct parameters *p, const unsigned char *image, struct activations *a)
{
    for (int j = 0; j < DIGIT_PIXELS; j++)
        a->input[j] = image[j] / 16.0;
    for (int i = 0; i < HIDDEN_UNITS; i++) {
        double sum = p->b1[i];
        for (int j = 0; j < DIGIT_PIXELS; j++)
            sum += p->w1[i][j] * a->input[j];
        a->hidden[i] = tanh(sum);
    }
    for (int i = 0; i < DIGIT_CLASSES; i++) {
        double sum = p->b2[i];
        for (int j = 0; j < HIDDEN_UNITS; j++)
            sum += p->w2[i][j] * a->hidden[j];
        a->output[i] = sum;
    }
    softmax(a->output, DIGIT_CLASSES);
}

static double cross_entropy(const struct activations *a, int label)
{
    return -log(fmax(a->output[label], 1e-300));
}

double network_backward(const struct network *network, const unsigned char *image, int label,
                        double *gradient)
{
    const struct parameters *p = &network->now;
    struct parameters g; /* of this image alone */
    struct activations a;
    forward(p, image, &a);

    double hidden_error[HIDDEN_UNITS] = {0};
    for (int i = 0; i < DIGIT_CLASSES; i++) {
        double error = a.output[i] - (i == label ? 1 : 0);
        g.b2[i] = error;
        for (int j = 0; j < HIDDEN_UNITS; j++) {
            g.w2[i][j] = error * a.hidden[j];
            hidden_error[j] += error * p->w2[i][j];
        }
    }
    for (int i = 0; i < HIDDEN_UNITS; i++) {
        double error = hidden_error[i] * (1 - a.hidden[i] * a.hidden[i]);
        g.b1[i] = error;
        for (int j = 0; j < DIGIT_PIXELS; j++)
            g.w1[i][j] = error * a.input[j];
    }
    const double *flat = (const double *)&g;
    for (size_t k = 0; k < PARAMETER_COUNT; k++)
        gradient[k] += flat[k];
    return cross_entropy(&a, label);
}

double network_loss(const struct network *network, const unsigned char *image, int label,
                    int *guess)
{
    struct activations a;
    forward(&network->now, image, &a);
    int best = 0;
    for (int i = 1; i < DIGIT_CLASSES; i++)
        if (a.output[i] > a.output[best])
            best = i;
    *guess = best;
    return cross_entropy(&a, label);
}

void network_step(struct network *network, const double *gradient, double scale, double rate)
{
    double *now = (double *)&network->now, *velocity = (double *)&network->velocity;
    for (size_t k = 0; k < PARAMETER_COUNT; k++) {
        velocity[k] = MOMENTUM * velocity[k] - rate * scale * gradient[k];
        now[k] += velocity[k];
    }
}
