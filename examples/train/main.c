/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data-parallel training with libhvd: every rank has the whole network and works on its share of
 * each batch. An allreduce adds up the gradients of all ranks, so that all ranks take the same
 * step. The lines with "// hvd" make it a distributed program.
 *
 * --batch is the batch of the whole job, not of one rank. So the result is the same for any number
 * of ranks, except for the order of floating-point sums. If the batch does not divide evenly, the
 * shares differ by one image. The program divides the sum by the number of images of all ranks, not
 * by the number of ranks.
 *
 * Rank 0 reads the images and sends them to the other ranks, so only its host needs the file.
 */
#include <hvd.h> // hvd
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dataset.h"
#include "network.h"
#include "options.h"

struct job {
    struct options options;
    int rank, size;
    struct dataset data;
    struct network *network;
    size_t *order;  /* the training images, shuffled for each epoch, the same on all ranks */
    double *fused;  /* one buffer for one allreduce: the gradient, then the loss */
    uint64_t state; /* of the random generator for `order` */
};

struct score {
    double loss; /* mean */
    double accuracy;
};

static void check(int status)
{
    if (status == HVD_OK)
        return;
    fprintf(stderr, "train: rank %d: %s\n", hvd_rank(), hvd_error_text());
    exit(1); /* the other ranks learn that this one is lost */
}

static struct hvd_tensor tensor_of(const char *name, enum hvd_type type, void *data,
                                   const int64_t *length)
{
    struct hvd_tensor tensor = HVD_TENSOR_INIT; // hvd
    tensor.name = name;
    tensor.type = type;
    tensor.shape = length;
    tensor.dims = 1;
    tensor.input = tensor.output = data;
    return tensor;
}

/* All ranks get the numbers of rank 0. */
static void share_bytes(const char *name, void *data, size_t count)
{
    const int64_t length = (int64_t)count;
    struct hvd_tensor tensor = tensor_of(name, HVD_UINT8, data, &length);
    check(hvd_broadcast(&tensor, 0, NULL)); // hvd
}

/* All ranks get the sums of the numbers of all ranks. */
static void sum(const char *name, double *numbers, size_t count)
{
    const int64_t length = (int64_t)count;
    struct hvd_tensor tensor = tensor_of(name, HVD_FLOAT64, numbers, &length);
    struct hvd_options options = HVD_OPTIONS_INIT; // hvd
    options.op = HVD_SUM;                          // hvd
    check(hvd_allreduce(&tensor, &options));       // hvd
}

/* This rank's share of `count` images is [*from, *to). The shares of all ranks have no gaps and no
 * overlaps. */
static void share(const struct job *job, size_t count, size_t *from, size_t *to)
{
    *from = count * (size_t)job->rank / (size_t)job->size;
    *to = count * ((size_t)job->rank + 1) / (size_t)job->size;
}

static void out_of_memory(const struct job *job)
{
    fprintf(stderr, "train: rank %d is out of memory\n", job->rank);
    exit(1);
}

/* On failure, all ranks return -1, and rank 0 has printed the reason. */
static int read_digits(struct job *job)
{
    size_t counts[2] = {0, 0};
    if (job->rank == 0) {
        char *found = job->options.data == NULL ? dataset_find() : NULL;
        const char *path = job->options.data != NULL ? job->options.data : found;
        if (path == NULL)
            fputs("train: examples/data/digits.csv was not found: name it with --data\n", stderr);
        else if (dataset_load(&job->data, path) == 0) {
            counts[0] = job->data.train_count;
            counts[1] = job->data.test_count;
        }
        free(found);
    }
    share_bytes("counts", counts, sizeof counts); // hvd
    size_t count = counts[0] + counts[1];
    if (count == 0)
        return -1;
    if (job->rank != 0) {
        job->data.train_count = counts[0];
        job->data.test_count = counts[1];
        job->data.pixels = malloc(count * DIGIT_PIXELS);
        job->data.labels = malloc(count);
        if (job->data.pixels == NULL || job->data.labels == NULL)
            out_of_memory(job);
    }
    share_bytes("pixels", job->data.pixels, count * DIGIT_PIXELS); // hvd
    share_bytes("labels", job->data.labels, count);                // hvd
    return 0;
}

static int job_prepare(struct job *job)
{
    if (read_digits(job) < 0)
        return -1;
    job->network = network_create(job->options.seed);
    job->order = calloc(job->data.train_count, sizeof *job->order);
    job->fused = calloc(network_parameter_count() + 1, sizeof *job->fused);
    if (job->network == NULL || job->order == NULL || job->fused == NULL)
        out_of_memory(job);
    for (size_t i = 0; i < job->data.train_count; i++)
        job->order[i] = i;
    job->state = job->options.seed ^ 0x6469676974u;
    return 0;
}

static void job_destroy(struct job *job)
{
    dataset_destroy(&job->data);
    network_destroy(job->network);
    free(job->order);
    free(job->fused);
}

static void shuffle(struct job *job)
{
    for (size_t i = job->data.train_count - 1; i > 0; i--) {
        size_t j = (size_t)(random_next(&job->state) % (i + 1));
        size_t other = job->order[j];
        job->order[j] = job->order[i];
        job->order[i] = other;
    }
}

/* One step with the `count` images from `first` on; returns the sum of their losses. */
static double train_batch(struct job *job, size_t first, size_t count)
{
    size_t parameters = network_parameter_count();
    for (size_t k = 0; k <= parameters; k++)
        job->fused[k] = 0;
    size_t from, to;
    share(job, count, &from, &to);
    for (size_t i = from; i < to; i++) {
        size_t image = job->order[first + i];
        job->fused[parameters] += network_backward(job->network, dataset_image(&job->data, image),
                                                   job->data.labels[image], job->fused);
    }
    sum("gradient", job->fused, parameters + 1); // hvd
    network_step(job->network, job->fused, 1.0 / (double)count, job->options.rate);
    return job->fused[parameters];
}

/* Returns the mean loss over the images of one epoch: of each image before its own step. */
static double train_epoch(struct job *job)
{
    size_t images = job->data.train_count, batch = (size_t)job->options.batch;
    double loss = 0;
    shuffle(job);
    for (size_t first = 0; first < images; first += batch) {
        size_t left = images - first;
        loss += train_batch(job, first, left < batch ? left : batch);
    }
    return loss / (double)images;
}

static struct score evaluate(const struct job *job, size_t first, size_t count)
{
    double sums[2] = {0, 0}; /* loss, right guesses */
    size_t from, to;
    share(job, count, &from, &to);
    for (size_t i = first + from; i < first + to; i++) {
        int guess;
        sums[0] +=
            network_loss(job->network, dataset_image(&job->data, i), job->data.labels[i], &guess);
        sums[1] += guess == job->data.labels[i];
    }
    sum("score", sums, 2); // hvd
    return (struct score){.loss = sums[0] / (double)count, .accuracy = sums[1] / (double)count};
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void job_run(struct job *job)
{
    const struct options *options = &job->options;
    double start = now();
    if (job->rank == 0)
        printf("training on %zu digits, %zu held out, %d rank%s, batch %ld\n",
               job->data.train_count, job->data.test_count, job->size, job->size == 1 ? "" : "s",
               options->batch);
    for (long epoch = 1; epoch <= options->epochs; epoch++) {
        double loss = train_epoch(job);
        if (job->rank == 0) {
            printf("epoch %2ld/%ld: loss %.4f\n", epoch, options->epochs, loss);
            fflush(stdout);
        }
    }
    struct score train = evaluate(job, 0, job->data.train_count);
    struct score test = evaluate(job, job->data.train_count, job->data.test_count);
    if (job->rank == 0)
        printf("final training loss %.6f\nheld-out accuracy %.2f %%\nseconds %.2f\n", train.loss,
               100 * test.accuracy, now() - start);
}

int main(int argc, char **argv)
{
    check(hvd_init(NULL));                                     // hvd
    struct job job = {.rank = hvd_rank(), .size = hvd_size()}; // hvd
    int status = 0;
    if (options_parse(&job.options, argc, argv, job.rank == 0) < 0) {
        status = 2;
    } else if (job.options.help) {
        if (job.rank == 0)
            options_help();
    } else if (job_prepare(&job) < 0) {
        status = 1;
    } else {
        job_run(&job);
    }
    job_destroy(&job);
    check(hvd_shutdown()); // hvd
    return status;
}
