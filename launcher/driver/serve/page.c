/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/serve/page.h"

#include <string.h>

#include "driver/serve/page_files.h"
#include "driver/serve/random_text.h"

/* Everything up to the mark, which is left out. */
static const char *put_until(const char *text, const char *mark, struct buf *out)
{
    const char *end = strstr(text, mark);
    if (end == NULL)
        return text;
    buf_append(out, text, (size_t)(end - text));
    return end + strlen(mark);
}

int page_text(struct buf *document, struct buf *policy)
{
    char nonce[RANDOM_TEXT_ROOM];
    if (random_text(nonce) < 0)
        return -1;
    const char *rest = put_until(page_html, "<!-- style -->", document);
    buf_printf(document, "<style nonce=\"%s\">\n", nonce);
    buf_puts(document, page_css);
    buf_puts(document, "</style>");
    rest = put_until(rest, "<!-- script -->", document);
    buf_printf(document, "<script nonce=\"%s\">\n", nonce);
    buf_puts(document, page_js);
    buf_puts(document, "</script>");
    buf_puts(document, rest);
    buf_printf(policy,
               "default-src 'none'; style-src 'nonce-%s'; script-src 'nonce-%s'; connect-src "
               "'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
               nonce, nonce);
    return 0;
}
