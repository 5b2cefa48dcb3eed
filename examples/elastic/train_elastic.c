/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data-parallel training with libhvd that survives the loss of ranks and hosts, and uses hosts that
 * come later. The lines marked (hvd) are what makes the training distributed and elastic.
 *
 *   hvdrun -np 4 --min-np 2 build/examples/elastic/train_elastic [EPOCHS [PAUSE-MS]]
 *
 * The network and the digits are those of examples/train. A batch has 48 images for all ranks
 * together, so the result hardly depends on the number of ranks. All ranks have the same network.
 * When one is lost, the others continue from the last commit, which they have in memory. A new rank
 * gets the network from them.
 *
 * PAUSE-MS is a wait after each batch, to give you time to watch.
 */
#include <hvd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../train/dataset.h"
#include "../train/network.h"

enum { BATCH = 48, SEED = 1 };
static const double rate = 0.05;

struct training {
    struct dataset data;
    struct network *network;
    struct hvd_sampler *sampler;
    double *fused; /* the gradient, then the loss and the number of images */
    long epochs, pause_ms;
};

/* Adds up `count` numbers of all ranks. */
static int sum(const char *name, double *numbers, size_t count)
{
    const int64_t shape[] = {(int64_t)count};
    struct hvd_tensor tensor = HVD_TENSOR_INIT;
    struct hvd_options options = HVD_OPTIONS_INIT;
    tensor.name = name;
    tensor.type = HVD_FLOAT64;
    tensor.shape = shape;
    tensor.dims = 1;
    tensor.input = tensor.output = numbers;
    options.op = HVD_SUM;
    return hvd_allreduce(&tensor, &options); /* (hvd) */
}

/* A batch: this rank's images from `first` on. */
static int train_batch(struct training *t, int64_t first, int64_t count)
{
    size_t parameters = network_parameter_count();
    memset(t->fused, 0, (parameters + 2) * sizeof *t->fused);
    for (int64_t i = first; i < first + count; i++) {
        size_t image = (size_t)hvd_sampler_at(t->sampler, i); /* (hvd) */
        t->fused[parameters] += network_backward(t->network, dataset_image(&t->data, image),
                                                 t->data.labels[image], t->fused);
    }
    t->fused[parameters + 1] = (double)count;
    int status = sum("gradient", t->fused, parameters + 2);
    if (status == HVD_OK)
        network_step(t->network, t->fused, 1.0 / t->fused[parameters + 1], rate);
    return status;
}

static int train_epoch(struct training *t, struct hvd_state *state)
{
    int64_t count = hvd_sampler_count(t->sampler), step = (BATCH + hvd_size() - 1) / hvd_size();
    for (int64_t first = 0; first < count; first += step) {
        int64_t now = count - first < step ? count - first : step;
        int status = train_batch(t, first, now);
        if (status != HVD_OK)
            return status;
        hvd_sampler_record(t->sampler, now);
        status = hvd_state_commit(state); /* (hvd) */
        if (status != HVD_OK)
            return status;
        poll(NULL, 0, (int)t->pause_ms);
    }
    return HVD_OK;
}

static int evaluate(struct training *t)
{
    double right = 0;
    size_t first = t->data.train_count, count = t->data.test_count;
    for (size_t i = first + (size_t)hvd_rank(); i < first + count; i += (size_t)hvd_size()) {
        int guess;
        network_loss(t->network, dataset_image(&t->data, i), t->data.labels[i], &guess);
        right += guess == t->data.labels[i];
    }
    int status = sum("right", &right, 1);
    if (status == HVD_OK && hvd_rank() == 0)
        printf("held-out accuracy %.2f %%\n", 100 * right / (double)count);
    return status;
}

/* Called anew whenever the ranks have changed. */
static int train(struct hvd_state *state, void *context)
{
    struct training *t = context;
    printf("rank %d of %d, pid %d, epoch %lld\n", hvd_rank(), hvd_size(), (int)getpid(),
           (long long)hvd_sampler_epoch(t->sampler) + 1);
    fflush(stdout);
    while (hvd_sampler_epoch(t->sampler) < t->epochs) {
        int status = train_epoch(t, state);
        if (status != HVD_OK)
            return status;
        hvd_sampler_set_epoch(t->sampler, hvd_sampler_epoch(t->sampler) + 1);
    }
    return evaluate(t);
}

static int prepare(struct training *t, struct hvd_state **state)
{
    char *path = dataset_find();
    if (path == NULL || dataset_load(&t->data, path) < 0)
        return -1;
    free(path);
    t->network = network_create(SEED);
    t->fused = calloc(network_parameter_count() + 2, sizeof *t->fused);
    if (t->network == NULL || t->fused == NULL)
        return -1;
    if (hvd_sampler_create((int64_t)t->data.train_count, true, SEED, &t->sampler) != HVD_OK)
        return -1;
    if (hvd_state_create(state) != HVD_OK || /* (hvd) */
        hvd_state_add(*state, "network", t->network, network_bytes()) != HVD_OK ||
        hvd_state_add_sampler(*state, "sampler", t->sampler) != HVD_OK)
        return -1;
    return 0;
}

int main(int argc, char **argv)
{
    struct training t = {.epochs = argc > 1 ? strtol(argv[1], NULL, 10) : 30,
                         .pause_ms = argc > 2 ? strtol(argv[2], NULL, 10) : 0};
    struct hvd_state *state = NULL;
    int status = hvd_init(NULL); /* (hvd) */
    if (status == HVD_OK && prepare(&t, &state) < 0)
        fputs("train_elastic: cannot read the digits, or there is not enough memory\n", stderr);
    else if (status == HVD_OK)
        status = hvd_elastic_run(state, train, &t); /* (hvd) */
    if (status != HVD_OK && status != HVD_ERR_REMOVED)
        fprintf(stderr, "train_elastic: %s\n", hvd_error_text());
    bool failed = (status != HVD_OK && status != HVD_ERR_REMOVED) || state == NULL;
    hvd_shutdown(); /* (hvd) */
    hvd_state_destroy(state);
    hvd_sampler_destroy(t.sampler);
    network_destroy(t.network);
    dataset_destroy(&t.data);
    free(t.fused);
    return failed ? 1 : 0;
}
