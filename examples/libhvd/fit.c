/* SPDX-License-Identifier: Apache-2.0 */
/* Fits a line to points by gradient descent. The lines with "// hvd" make it a distributed program:
 * each rank has its own points, and all ranks end with the same line. */
#include <stdio.h>

#include <hvd.h> // hvd

enum { POINTS = 1000, STEPS = 400 };

/* Points of the line y = 3 x + 1, which are different on each rank. */
static double x_of(int rank, int i)
{
    return (double)((i * 7919 + rank * 104729) % 1000) / 1000;
}

static void gradient_of(const double line[2], int rank, double gradient[2])
{
    gradient[0] = gradient[1] = 0;
    for (int i = 0; i < POINTS; i++) {
        double x = x_of(rank, i), error = line[0] * x + line[1] - (3 * x + 1);
        gradient[0] += 2 * error * x / POINTS;
        gradient[1] += 2 * error / POINTS;
    }
}

int main(void)
{
    double line[2] = {0, 0}, gradient[2];
    const int64_t length = 2;                                // hvd
    struct hvd_tensor tensor = HVD_TENSOR_INIT;              // hvd
    if (hvd_init(NULL) != HVD_OK)                            // hvd
        return fprintf(stderr, "%s\n", hvd_error_text()), 1; // hvd
    tensor.name = "gradient", tensor.type = HVD_FLOAT64;     // hvd
    tensor.shape = &length, tensor.dims = 1;                 // hvd
    tensor.input = tensor.output = gradient;                 // hvd
    for (int step = 0; step < STEPS; step++) {
        gradient_of(line, hvd_rank(), gradient);
        if (hvd_allreduce(&tensor, NULL) != HVD_OK)              // hvd
            return fprintf(stderr, "%s\n", hvd_error_text()), 1; // hvd
        for (int i = 0; i < 2; i++)
            line[i] -= 0.5 * gradient[i];
    }
    if (hvd_rank() == 0)
        printf("%d rank%s: y = %.3f x + %.3f\n", hvd_size(), hvd_size() == 1 ? "" : "s", line[0],
               line[1]);
    return hvd_shutdown(); // hvd
}
