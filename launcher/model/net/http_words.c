/* SPDX-License-Identifier: Apache-2.0 */
#include "model/net/http_words.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"

#define DIGITS_MAX 10
#define HOST_MAX 64 /* the longest address is shorter */

bool http_query_find(const char *query, const char *name, struct http_word *out)
{
    size_t name_length = strlen(name);
    for (const char *at = query; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, "&");
        if (length > name_length && at[name_length] == '=' && memcmp(at, name, name_length) == 0) {
            *out = (struct http_word){at + name_length + 1, length - name_length - 1};
            return true;
        }
        at += length;
        at += *at == '&';
    }
    return false;
}

bool http_word_number(const struct http_word *word, int most, int *out)
{
    char text[DIGITS_MAX + 1] = "";
    int64_t number = 0;
    if (word->length == 0 || word->length > DIGITS_MAX)
        return false;
    memcpy(text, word->text, word->length);
    if (strspn(text, "0123456789") != word->length || parse_int(text, 0, most, &number, NULL) < 0)
        return false;
    *out = (int)number;
    return true;
}

bool http_word_is_secret(const struct http_word *word, const char *secret)
{
    unsigned different = 0;
    if (word->length != strlen(secret))
        return false;
    for (size_t i = 0; i < word->length; i++)
        different |= (unsigned char)(word->text[i] ^ secret[i]);
    return different == 0;
}

static bool is_port(const char *text)
{
    return *text == '\0' || (*text == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

bool http_host_is_address(const char *host)
{
    char name[HOST_MAX + 1] = "";
    struct in6_addr address;
    bool bracketed = host[0] == '[';
    size_t length = bracketed ? strcspn(host + 1, "]") : strcspn(host, ":");
    const char *begin = host + bracketed;
    if (length > HOST_MAX || (bracketed && begin[length] != ']') ||
        !is_port(begin + length + bracketed))
        return false;
    memcpy(name, begin, length);
    if (bracketed)
        return inet_pton(AF_INET6, name, &address) == 1;
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &address) == 1;
}
