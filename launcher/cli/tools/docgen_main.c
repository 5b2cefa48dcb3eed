/* SPDX-License-Identifier: Apache-2.0 */
/* A tool for the build: `hvdrun-docgen KIND` prints one of the documents of cli/docgen.h. */
#include <stdio.h>

#include "cli/docgen.h"

#define TEXT_LIMIT ((size_t)1 << 20)

int main(int argc, char **argv)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    docgen_function *generate = argc == 2 ? docgen_find(argv[1]) : NULL;
    if (generate == NULL) {
        fputs("usage: hvdrun-docgen man|table|coming-from|bash|zsh|fish\n", stderr);
        return 2;
    }
    generate(&text);
    size_t written = fwrite(buf_text(&text), 1, text.length, stdout);
    return written == text.length && fflush(stdout) == 0 ? 0 : 1;
}
