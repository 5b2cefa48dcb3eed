/* SPDX-License-Identifier: Apache-2.0 */
/* The device memory of the fake GPUs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t memory_new(int device, size_t bytes); /* 0: there is not enough */
bool memory_free(uint64_t address);            /* false: it is not the memory of a device */
int memory_device(uint64_t address);           /* -1: not the memory of a device */
