/* SPDX-License-Identifier: Apache-2.0 */
/* The query and the Host of a request: nothing outside of the text is read, what is found is there,
 * and only the secret itself opens. */
#include "base/mem.h"
#include "fuzz.h"
#include "model/net/http_words.h"

#define SECRET "0123456789abcdef"

FUZZ_TARGET
{
    char *text = mem_alloc(size + 1); /* of this size, so that the sanitizer sees each end */
    memcpy(text, data, size);
    struct http_word word;
    int number = -1;
    if (http_query_find(text, "token", &word)) {
        FUZZ_CHECK(word.text >= text + 6 && word.text + word.length <= text + strlen(text));
        FUZZ_CHECK(memcmp(word.text - 6, "token=", 6) == 0);
        FUZZ_CHECK(memchr(word.text, '&', word.length) == NULL);
        bool same = word.length == strlen(SECRET) && memcmp(word.text, SECRET, word.length) == 0;
        FUZZ_CHECK(http_word_is_secret(&word, SECRET) == same);
    }
    if (http_query_find(text, "rank", &word) && http_word_number(&word, 4095, &number))
        FUZZ_CHECK(number >= 0 && number <= 4095);
    if (http_host_is_address(text))
        FUZZ_CHECK(strspn(text, "0123456789abcdefABCDEF:.[]localhstLOCALHST") == strlen(text));
    free(text);
    return 0;
}
