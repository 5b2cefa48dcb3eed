/* SPDX-License-Identifier: Apache-2.0 */
/* A tool for the build: `hvdrun-docgen table|coming-from|TEMPLATE` prints a document (cli/texts.h).
 */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "cli/texts.h"

#define TEXT_LIMIT ((size_t)1 << 20)

int main(int argc, char **argv)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT), template AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    struct error err = ERROR_INIT;
    if (argc == 2 && strcmp(argv[1], "table") == 0)
        docgen_table(&text);
    else if (argc == 2 && strcmp(argv[1], "coming-from") == 0)
        docgen_coming_from(&text);
    else if (argc != 2)
        error_set(&err, "usage: hvdrun-docgen table|coming-from|TEMPLATE");
    else if (fd_read_file(argv[1], &template, &err) == 0 &&
             docgen_fill(buf_text(&template), &text, &err) < 0)
        error_wrap(&err, "%s", argv[1]);
    if (err.text[0] != '\0')
        fprintf(stderr, "%s\n", err.text);
    size_t written = fwrite(buf_text(&text), 1, text.length, stdout);
    return err.text[0] == '\0' && written == text.length && fflush(stdout) == 0 ? 0 : 1;
}
