/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of `hvdrun check --gpu`, for both of its ends. */
#pragma once

#define GPU_FACTS_MS 20000  /* what NVIDIA's library says of all GPUs of a host */
#define GPU_TEST_MS 120000  /* their test; PyTorch alone can take 30 s to load from a network */
#define GPU_ANSWER_MS 10000 /* for the rest of an answer */
#define GPU_TEST_TEXT_MAX ((size_t)64 << 10)
