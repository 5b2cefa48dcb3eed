/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <stdio.h>
#include <string.h>

struct job job_begin(void)
{
    job_expect(hvd_init(NULL), HVD_OK, "", "hvd_init");
    return (struct job){hvd_rank(), hvd_size()};
}

void job_end(const struct job *job)
{
    job_expect(hvd_shutdown(), HVD_OK, "", "hvd_shutdown");
    printf("rank %d of %d: all right\n", job->rank, job->size);
}

void job_expect(int status, int expected, const char *part, const char *what)
{
    if (status != expected)
        worker_fail("%s: status %d, not %d: %s", what, status, expected, hvd_error_text());
    if (expected != HVD_OK && strstr(hvd_error_text(), part) == NULL)
        worker_fail("%s: the text is '%s', without '%s'", what, hvd_error_text(), part);
}

struct hvd_tensor job_tensor(const char *name, enum hvd_type type, const int64_t *length,
                             const void *input, void *output)
{
    struct hvd_tensor tensor = HVD_TENSOR_INIT;
    tensor.name = name;
    tensor.type = type;
    tensor.shape = length;
    tensor.dims = 1;
    tensor.input = input;
    tensor.output = output;
    return tensor;
}
