/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static int parse_count(const char *text, long min, long max, long *out)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min || value > max)
        return -1;
    *out = value;
    return 0;
}

static int parse_rate(const char *text, double *out)
{
    char *end;
    double value = strtod(text, &end);
    /* written so that NaN fails too */
    if (end == text || *end != '\0' || !(value > 0 && value <= 10))
        return -1;
    *out = value;
    return 0;
}

static int set_option(struct options *options, int letter)
{
    long number;
    switch (letter) {
    case 'e': return parse_count(optarg, 1, 100000, &options->epochs);
    case 'b': return parse_count(optarg, 1, 100000, &options->batch);
    case 'l': return parse_rate(optarg, &options->rate);
    case 's':
        if (parse_count(optarg, 0, 1000000000, &number) < 0)
            return -1;
        options->seed = (uint64_t)number;
        return 0;
    case 'd': options->data = optarg; return 0;
    default: options->help = true; return 0;
    }
}

int options_parse(struct options *options, int argc, char **argv, bool speak)
{
    static const struct option names[] = {
        {"epochs", required_argument, NULL, 'e'},
        {"batch", required_argument, NULL, 'b'},
        {"lr", required_argument, NULL, 'l'},
        {"seed", required_argument, NULL, 's'},
        {"data", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct options){.epochs = 20, .batch = 64, .rate = 0.2, .seed = 1};
    opterr = speak;
    for (;;) {
        int which = 0;
        int letter = getopt_long(argc, argv, "", names, &which);
        if (letter == -1)
            break;
        if (letter == '?')
            return -1;
        if (set_option(options, letter) < 0) {
            if (speak)
                fprintf(stderr, "train: '%s' is not a valid value for --%s: see --help\n", optarg,
                        names[which].name);
            return -1;
        }
    }
    if (optind < argc) {
        if (speak)
            fprintf(stderr, "train: unexpected argument '%s': see --help\n", argv[optind]);
        return -1;
    }
    return 0;
}

void options_help(void)
{
    puts("usage: train [options]      (start it with hvdrun -np N or mpirun -np N)\n"
         "  --epochs N    times through the training images (20)\n"
         "  --batch N     images per step, over all ranks together (64)\n"
         "  --lr RATE     learning rate (0.2)\n"
         "  --seed N      seed for the first weights and the order of images (1)\n"
         "  --data PATH   file with the digits (default: the program finds "
         "examples/data/digits.csv)");
}
