/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "unit_nouns.h"

#define DECLARE(noun) int unit_main_##noun(void);
UNIT_NOUN_LIST(DECLARE)
#undef DECLARE

static const struct {
    const char *noun;
    int (*run)(void);
} tests[] = {
#define ROW(noun) {#noun, unit_main_##noun},
    UNIT_NOUN_LIST(ROW)
#undef ROW
};

#define TEST_COUNT (sizeof(tests) / sizeof(tests[0]))

__attribute__((weak)) int unit_called_otherwise(int argc, char **argv)
{
    (void)argc;
    fprintf(stderr, "usage: %s NOUN, which is one of:\n", argv[0]);
    for (size_t i = 0; i < TEST_COUNT; i++)
        fprintf(stderr, "  %s\n", tests[i].noun);
    return 2;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < TEST_COUNT; i++) {
        if (strcmp(argv[1], tests[i].noun) == 0)
            return tests[i].run();
    }
    return unit_called_otherwise(argc, argv);
}
