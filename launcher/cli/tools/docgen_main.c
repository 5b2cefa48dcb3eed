/* SPDX-License-Identifier: Apache-2.0 */
/* A tool for the build: `hvdrun-docgen KIND` prints one of the documents of cli/texts.h. */
#include <stdio.h>
#include <string.h>

#include "cli/texts.h"

#define TEXT_LIMIT ((size_t)1 << 20)

static const struct {
    const char *kind;
    void (*generate)(struct buf *out);
} documents[] = {
    {"man", docgen_man},   {"table", docgen_table}, {"coming-from", docgen_coming_from},
    {"bash", docgen_bash}, {"zsh", docgen_zsh},     {"fish", docgen_fish},
};

int main(int argc, char **argv)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]) && argc == 2; i++) {
        if (strcmp(documents[i].kind, argv[1]) == 0)
            documents[i].generate(&text);
    }
    if (text.length == 0) {
        fputs("usage: hvdrun-docgen man|table|coming-from|bash|zsh|fish\n", stderr);
        return 2;
    }
    size_t written = fwrite(buf_text(&text), 1, text.length, stdout);
    return written == text.length && fflush(stdout) == 0 ? 0 : 1;
}
