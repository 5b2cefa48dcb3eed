/* SPDX-License-Identifier: Apache-2.0 */
#include "features/kubernetes/kubernetes.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/plain.h"

bool yaml_text_is_valid(const char *text)
{
    char *copy AUTO_FREE = mem_strdup(text);
    plain_valid(copy, strlen(copy));
    return strcmp(copy, text) == 0;
}

/* These words are no strings: kubectl reads YAML 1.1, where "no" is false. */
static bool is_word_of_yaml(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no",  "on",
                                        "off",  "y",     "n",   "null"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(words[i], text) == 0)
            return true;
    }
    return false;
}

/* Begins with a letter or a path, so that it is no number, date or mark, and has nothing that could
 * end a scalar, also within [] and {}. */
static bool is_plain(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789._/-";
    return text[0] != '\0' && strchr(letters, text[0]) != NULL &&
           text[strspn(text, others)] == '\0' && !is_word_of_yaml(text);
}

/* The code point at `text`, which is valid UTF-8. Returns its length. */
static size_t decode(const unsigned char *text, unsigned *code)
{
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    *code = length == 1 ? text[0] : text[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++)
        *code = *code << 6 | (text[i] & 0x3fU);
    return length;
}

/* What YAML does not call printable, and what its readers take for the end of a line, or leave out
 * (a mark of the byte order). */
static bool needs_escape(unsigned code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff || (code & 0xfffe) == 0xfffe;
}

void yaml_text_put(const char *text, struct buf *out)
{
    if (is_plain(text)) {
        buf_puts(out, text);
        return;
    }
    buf_putc(out, '"');
    while (*text != '\0') {
        unsigned code;
        size_t length = decode((const unsigned char *)text, &code);
        if (code == '"' || code == '\\')
            buf_printf(out, "\\%c", (int)code);
        else if (code == '\n' || code == '\t')
            buf_puts(out, code == '\n' ? "\\n" : "\\t");
        else if (!needs_escape(code))
            buf_append(out, text, length);
        else
            buf_printf(out, code > 0xffff ? "\\U%08X" : code > 0xff ? "\\u%04X" : "\\x%02X", code);
        text += length;
    }
    buf_putc(out, '"');
}
