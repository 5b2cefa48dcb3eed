/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast hvd_allreduce() is, for each size: a table in the form of NVIDIA's nccl-tests.
 *
 * `time` is that of one call in place, on the slowest rank. `algbw` is size / time. `busbw` is
 * algbw * 2 (n - 1) / n for n ranks: what each connection carries with an ideal algorithm. So you
 * can compare busbw with the speed of the network, for any number of ranks. `#wrong` counts the
 * elements of all ranks that are not what they should be, after one more call.
 */
#include <hvd.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "values.h"

struct settings {
    size_t min, max; /* bytes */
    size_t factor;
    long rounds, warm_up;
    enum hvd_type type;
    enum hvd_op op;
};

static const char usage[] = "usage: bench_allreduce [OPTION VALUE]...\n"
                            "  -b, -e  sizes in bytes, with K, M or G   (8 and 16M)\n"
                            "  -f      from one size to the next        (4)\n"
                            "  -d      float16 bfloat16 float32 float64 int32 int64   (float32)\n"
                            "  -o      sum average min max product adasum             (sum)\n"
                            "  -n, -w  calls that count, and before     (20 and 5)\n";

static void check(int status)
{
    if (status == HVD_OK)
        return;
    fprintf(stderr, "bench_allreduce: rank %d: %s\n", hvd_rank(), hvd_error_text());
    exit(1);
}

/* ---- Options --------------------------------------------------------------------------------- */

/* A number, which may end with K, M or G. */
static int parse_number(const char *text, size_t min, size_t max, size_t *out)
{
    static const char units[] = "KMG";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end == '\0' ? NULL : strchr(units, *end);
    for (const char *at = units; unit != NULL && at <= unit; at++)
        value *= 1024;
    if (end == text || (*end != '\0' && (unit == NULL || end[1] != '\0')) ||
        !(value >= (double)min) || !(value <= (double)max))
        return -1;
    *out = (size_t)value;
    return 0;
}

static int parse_type(const char *text, enum hvd_type *out)
{
    static const enum hvd_type types[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                          HVD_FLOAT64, HVD_INT32,    HVD_INT64};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(text, hvd_type_name(types[i])) == 0) {
            *out = types[i];
            return 0;
        }
    return -1;
}

#define OP_ROW(name, value, text) {name, text},
static const struct {
    enum hvd_op op;
    const char *text;
} ops[] = {HVD_OP_LIST(OP_ROW)};

static const char *op_name(enum hvd_op op)
{
    size_t i = 0;
    while (ops[i].op != op)
        i++;
    return ops[i].text;
}

static int parse_op(const char *text, enum hvd_op *out)
{
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(text, ops[i].text) == 0) {
            *out = ops[i].op;
            return 0;
        }
    return -1;
}

enum { FACTOR_MAX = 1 << 10, ROUNDS_MAX = 1 << 20 };
static const size_t size_max = (size_t)1 << 46;

static int set_option(struct settings *settings, int letter, const char *text)
{
    size_t number = 0;
    switch (letter) {
    case 'b': return parse_number(text, 1, size_max, &settings->min);
    case 'e': return parse_number(text, 1, size_max, &settings->max);
    case 'f': return parse_number(text, 2, FACTOR_MAX, &settings->factor);
    case 'd': return parse_type(text, &settings->type);
    case 'o': return parse_op(text, &settings->op);
    default:
        if (parse_number(text, letter == 'n' ? 1 : 0, ROUNDS_MAX, &number) < 0)
            return -1;
        *(letter == 'n' ? &settings->rounds : &settings->warm_up) = (long)number;
        return 0;
    }
}

/* Ends the program if an option is wrong, or asks for help. All ranks parse, and rank 0 speaks. */
static struct settings parse(int argc, char **argv)
{
    struct settings settings = {8, (size_t)16 << 20, 4, 20, 5, HVD_FLOAT32, HVD_SUM};
    int status = -1;
    opterr = 0;
    for (int letter = 0; status < 0 && letter != -1;) {
        letter = getopt(argc, argv, ":b:e:f:d:o:n:w:h");
        if (letter == 'h')
            status = 0;
        else if (letter == '?' || letter == ':' ||
                 (letter != -1 && set_option(&settings, letter, optarg) < 0))
            status = 2;
    }
    if (status < 0 && (optind < argc || settings.max < settings.min))
        status = 2;
    if (status < 0)
        return settings;
    if (hvd_rank() == 0)
        fputs(usage, status == 0 ? stdout : stderr);
    hvd_shutdown();
    exit(status);
}

/* ---- Measurement ----------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void reduce(const char *name, enum hvd_type type, enum hvd_op op, void *data, size_t count)
{
    const int64_t length = (int64_t)count;
    struct hvd_tensor tensor = HVD_TENSOR_INIT;
    struct hvd_options options = HVD_OPTIONS_INIT;
    tensor.name = name;
    tensor.type = type;
    tensor.shape = &length;
    tensor.dims = 1;
    tensor.input = tensor.output = data;
    options.op = op;
    check(hvd_allreduce(&tensor, &options));
}

/* Of all ranks. */
static int64_t count_wrong(const struct settings *settings, void *data, size_t count)
{
    values_fill(settings->type, settings->op, data, count);
    reduce("checked", settings->type, settings->op, data, count);
    int64_t wrong = values_count_wrong(settings->type, settings->op, data, count);
    reduce("wrong", HVD_INT64, HVD_SUM, &wrong, 1);
    return wrong;
}

/* Seconds of one call, on the slowest rank. */
static double measure(const struct settings *settings, void *data, size_t count)
{
    double start = 0;
    values_fill(settings->type, settings->op, data, count);
    for (long i = -settings->warm_up; i < settings->rounds; i++) {
        if (i == 0) {
            check(hvd_barrier(NULL));
            start = now();
        }
        reduce("measured", settings->type, settings->op, data, count);
    }
    double seconds = (now() - start) / (double)settings->rounds;
    reduce("seconds", HVD_FLOAT64, HVD_MAX, &seconds, 1);
    return seconds;
}

static void print_head(const struct settings *settings)
{
    if (hvd_rank() != 0)
        return;
    printf("# %d rank%s, engine %s, in place, %ld calls after %ld\n", hvd_size(),
           hvd_size() == 1 ? "" : "s", hvd_engine(), settings->rounds, settings->warm_up);
    printf("# %12s %12s %9s %8s %10s %8s %8s %8s\n", "size", "count", "type", "redop", "time",
           "algbw", "busbw", "#wrong");
    printf("# %12s %12s %9s %8s %10s %8s %8s %8s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)",
           "(GB/s)", "");
}

/* All sizes. Returns how many elements were wrong. */
static int64_t run(const struct settings *settings)
{
    size_t bytes = hvd_type_bytes(settings->type), rows = 0;
    int64_t wrong = 0;
    double sum = 0, links = 2.0 * (hvd_size() - 1) / hvd_size();
    void *data = malloc(settings->max + bytes);
    if (data == NULL) {
        fprintf(stderr, "bench_allreduce: rank %d is out of memory\n", hvd_rank());
        exit(1);
    }
    print_head(settings);
    for (size_t size = settings->min; size <= settings->max; size *= settings->factor, rows++) {
        size_t count = size < bytes ? 1 : size / bytes;
        double seconds = measure(settings, data, count);
        double speed = (double)(count * bytes) / seconds / 1e9;
        int64_t wrong_here = count_wrong(settings, data, count);
        sum += speed * links;
        wrong += wrong_here;
        if (hvd_rank() != 0)
            continue;
        printf("  %12zu %12zu %9s %8s %10.2f %8.3f %8.3f %8" PRId64 "\n", count * bytes, count,
               hvd_type_name(settings->type), op_name(settings->op), 1e6 * seconds, speed,
               speed * links, wrong_here);
        fflush(stdout);
    }
    if (hvd_rank() == 0)
        printf("# average bus bandwidth: %.3f GB/s\n", sum / (double)rows);
    free(data);
    return wrong;
}

int main(int argc, char **argv)
{
    check(hvd_init(NULL));
    struct settings settings = parse(argc, argv);
    int64_t wrong = run(&settings);
    check(hvd_shutdown());
    return wrong == 0 ? 0 : 1;
}
