/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpu_test.py prints, a line for each fact:
 *   none REASON                       it tests nothing
 *   torch VERSION, nccl VERSION
 *   speed UUID TFLOPS GB/S GB/S       one GPU, in the order of enum gpu_speed_kind
 *   busy UUID                         others use this GPU, so it is not tested
 *   reduce GPUS GB/S                  all of these together
 * As one of two ranks ("between RANK ADDRESS PORT INTERFACE"), it prints only
 *   between GB/S                      of an all-reduce with the other host
 * Pure.
 */
#pragma once

#include <stddef.h>

/* Limits for both ends of `hvdrun check --gpu`. */
#define GPU_FACTS_MS 20000 /* what NVIDIA's library says of all GPUs of a host */
#define GPU_TEST_MS 120000 /* PyTorch alone can take 30 s to load from a network */
#define GPU_BETWEEN_MS 90000
#define GPU_ANSWER_MS 10000 /* for the rest of an answer */
#define GPU_TEST_TEXT_MAX ((size_t)64 << 10)

enum gpu_speed_kind {
    SPEED_COMPUTE, /* TFLOP/s of matrix products in bf16 */
    SPEED_MEMORY,  /* GB/s read and written, of copies within its memory */
    SPEED_HOST,    /* GB/s of copies from the host's memory */
    SPEEDS
};

struct gpu_speed {
    char uuid[96];
    double value[SPEEDS];
};

struct gpu_test {
    char *none;         /* why nothing is tested; NULL */
    char *torch, *nccl; /* versions; NULL */
    struct gpu_speed *speeds;
    size_t count;
    int reduce_gpus; /* 0: there was no all-reduce */
    double reduce;   /* GB/s that each GPU's links carry */
    double between;  /* GB/s with another host; 0: there was none */
};

/* Lines that are not as above are left out. */
void gpu_test_read(const char *text, size_t length, struct gpu_test *out);
const struct gpu_speed *gpu_test_find(const struct gpu_test *test, const char *uuid); /* or NULL */
void gpu_test_clear(struct gpu_test *test);
