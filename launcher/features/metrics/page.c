/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/metrics.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/text.h"

#define RANDOM_BYTES (RANDOM_TEXT_ROOM / 2)

int random_text(char out[RANDOM_TEXT_ROOM])
{
    uint8_t bytes[RANDOM_BYTES];
    if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) != (ssize_t)sizeof(bytes))
        return -1;
    text_hex(bytes, sizeof(bytes), out);
    return 0;
}

/* The files of the folder page/, of which the build defines the name. The script is several files
 * in a row. */
#define BEGIN(name)                                                                               \
    ".pushsection .rodata\n.globl " #name "\n.hidden " #name "\n.type " #name ", @object\n" #name \
    ":\n"
#define FILE_OF(file) ".incbin \"" HVDRUN_PAGE_FOLDER "/" file "\"\n"
#define END ".byte 0\n.popsection\n"

__asm__(BEGIN(page_html) FILE_OF("page.html") END);
__asm__(BEGIN(page_css) FILE_OF("page.css") END);
__asm__(BEGIN(page_js) FILE_OF("text.js") FILE_OF("ranks.js") FILE_OF("hosts.js")
            FILE_OF("time_line.js") FILE_OF("curves.js") FILE_OF("output.js") FILE_OF("page.js")
                END);

extern const char page_html[], page_css[], page_js[];

/* Everything up to the mark, which is left out. */
static const char *put_until(const char *text, const char *mark, struct buf *out)
{
    const char *end = strstr(text, mark);
    if (end == NULL)
        return text;
    buf_append(out, text, (size_t)(end - text));
    return end + strlen(mark);
}

/* JSON in an element <script>. There, "<" may end the element or begin a comment, and some readers
 * take U+2028 and U+2029 for ends of lines. JSON has these characters only in strings. */
static int put_json(const struct buf *json, struct buf *out)
{
    const char *text = buf_text(json);
    int result = 0;
    for (size_t i = 0; i < json->length && result == 0; i++) {
        if (text[i] == '<')
            result = buf_puts(out, "\\u003c");
        else if (strncmp(text + i, "\xe2\x80\xa8", 3) == 0 ||
                 strncmp(text + i, "\xe2\x80\xa9", 3) == 0)
            result = buf_printf(out, "\\u202%c", text[i += 2] == '\xa8' ? '8' : '9');
        else
            result = buf_putc(out, text[i]);
    }
    return result;
}

/* `kept`: NULL: the page asks a server. */
static int put_document(const char *nonce, const char *policy, const struct buf *kept,
                        struct buf *document)
{
    const char *rest = put_until(page_html, "<!-- style -->", document);
    int result = 0;
    if (policy != NULL)
        buf_printf(document, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n",
                   policy);
    buf_printf(document, "<style nonce=\"%s\">\n", nonce);
    buf_puts(document, page_css);
    buf_puts(document, "</style>");
    rest = put_until(rest, "<!-- script -->", document);
    if (kept != NULL) {
        buf_puts(document, "<script id=\"kept\" type=\"application/json\">");
        result = put_json(kept, document);
        buf_puts(document, "</script>\n");
    }
    buf_printf(document, "<script nonce=\"%s\">\n", nonce);
    buf_puts(document, page_js);
    buf_puts(document, "</script>");
    return buf_puts(document, rest) < 0 ? -1 : result;
}

#define POLICY_OF_SCRIPTS "default-src 'none'; style-src 'nonce-%s'; script-src 'nonce-%s'; "
#define POLICY_OF_THE_REST "img-src data:; base-uri 'none'; form-action 'none'"

int page_text(struct buf *document, struct buf *policy)
{
    char nonce[RANDOM_TEXT_ROOM];
    if (random_text(nonce) < 0)
        return -1;
    buf_printf(policy,
               POLICY_OF_SCRIPTS "connect-src 'self'; " POLICY_OF_THE_REST
                                 "; frame-ancestors 'none'",
               nonce, nonce);
    return put_document(nonce, NULL, NULL, document);
}

/* A policy inside of a document must not have frame-ancestors. */
int page_kept_text(const struct buf *json, struct buf *document)
{
    struct buf policy AUTO_BUF = BUF_INIT(PAGE_POLICY_MAX);
    char nonce[RANDOM_TEXT_ROOM];
    if (random_text(nonce) < 0)
        return -1;
    buf_printf(&policy, POLICY_OF_SCRIPTS POLICY_OF_THE_REST, nonce, nonce);
    return put_document(nonce, buf_text(&policy), json, document);
}
