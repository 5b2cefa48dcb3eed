/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/known_hosts.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "transport/ssh_module/fields.h"

/*
 * The host patterns of known_hosts lines: names between commas, `*` for any bytes, `?` for one, a
 * leading `!` for "not these". Upper and lower case are the same. The time is linear in name x
 * pattern, whatever the pattern.
 */

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static bool pattern_matches(const char *pattern, size_t length, const char *name)
{
    const char *end = pattern + length, *star = NULL, *retry = NULL;

    while (*name) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (pattern < end && (*pattern == '?' || same(*pattern, *name))) {
            pattern++;
            name++;
        } else if (star) { /* the last star swallows one byte more */
            pattern = star;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

/* True when one of the patterns matches and none of the negated ones does. */
static bool pattern_list_matches(const char *list, size_t length, const char *name)
{
    const char *end = list + length;
    bool matched = false;

    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *stop = comma ? comma : end;
        bool negated = *list == '!';

        if (negated)
            list++;
        if (stop > list && pattern_matches(list, (size_t)(stop - list), name)) {
            if (negated)
                return false;
            matched = true;
        }
        list = comma ? comma + 1 : end;
    }
    return matched;
}

/* Hashed names. */

#define BLOCK 64  /* bytes that SHA-1 takes at a time */
#define DIGITS 28 /* of 20 bytes in base64 */

struct name_hasher {
    EVP_MD *sha1; /* NULL: there is none */
    EVP_MD_CTX *context;
};

struct name_hasher *name_hasher_create(void)
{
    struct name_hasher *hasher = mem_alloc(sizeof *hasher);

    hasher->sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    hasher->context = EVP_MD_CTX_new();
    return hasher;
}

void name_hasher_destroy(struct name_hasher *hasher)
{
    if (!hasher)
        return;
    EVP_MD_CTX_free(hasher->context);
    EVP_MD_free(hasher->sha1);
    mem_free_at(&hasher);
}

bool name_hash_parse(struct name_hash *out, struct byte_view field)
{
    const char *text = (const char *)field.at;
    unsigned char salt[DIGITS], hash[DIGITS];

    if (field.length != 3 + DIGITS + 1 + DIGITS || memcmp(text, "|1|", 3) != 0 ||
        text[3 + DIGITS] != '|' || base64_decode(text + 3, DIGITS, salt) != NAME_HASH_SIZE ||
        base64_decode(text + 3 + DIGITS + 1, DIGITS, hash) != NAME_HASH_SIZE)
        return false;
    memcpy(out->salt, salt, NAME_HASH_SIZE);
    memcpy(out->hash, hash, NAME_HASH_SIZE);
    return true;
}

/* Half an HMAC (RFC 2104): the digest of the salt, padded and veiled, and of the bytes. */
static bool digest(struct name_hasher *hasher, const unsigned char *salt, unsigned char veil,
                   const void *bytes, size_t length, unsigned char *out)
{
    unsigned char key[BLOCK] = {0};

    memcpy(key, salt, NAME_HASH_SIZE);
    for (size_t i = 0; i < sizeof key; i++)
        key[i] ^= veil;
    return EVP_DigestInit_ex2(hasher->context, hasher->sha1, NULL) == 1 &&
           EVP_DigestUpdate(hasher->context, key, sizeof key) == 1 &&
           EVP_DigestUpdate(hasher->context, bytes, length) == 1 &&
           EVP_DigestFinal_ex(hasher->context, out, NULL) == 1;
}

/* Fills the hash of `name` under the salt that is in it. By hand, since OpenSSL's own HMAC sets up
 * its machinery again for each key, which takes four times as long as the hashing. -1: OpenSSL has
 * no SHA-1. */
static int name_hash_fill(struct name_hasher *hasher, struct name_hash *out, const char *name)
{
    unsigned char inner[NAME_HASH_SIZE];

    if (!hasher->sha1 || !hasher->context ||
        !digest(hasher, out->salt, 0x36, name, strlen(name), inner) ||
        !digest(hasher, out->salt, 0x5c, inner, sizeof inner, out->hash))
        return -1;
    return 0;
}

bool name_hash_matches(struct name_hasher *hasher, const struct name_hash *hash, const char *name)
{
    struct name_hash own;

    memcpy(own.salt, hash->salt, NAME_HASH_SIZE);
    return name_hash_fill(hasher, &own, name) == 0 &&
           memcmp(own.hash, hash->hash, NAME_HASH_SIZE) == 0;
}

/* Writes it as a field. -1: over the buffer's limit. */
static int name_hash_put(const struct name_hash *hash, struct buf *out)
{
    if (buf_puts(out, "|1|") < 0 || base64_append(out, hash->salt, NAME_HASH_SIZE) < 0 ||
        buf_putc(out, '|') < 0)
        return -1;
    return base64_append(out, hash->hash, NAME_HASH_SIZE);
}

/* The lines. */

#define SSH_PORT 22
#define ENTRIES_MAX 4096 /* that match one host */
#define KEY_MAX 16384    /* bytes; the largest RSA keys have 2 KiB */

enum mark { MARK_NONE, MARK_AUTHORITY, MARK_REVOKED };

struct known_entry {
    enum mark mark;
    bool portless; /* it names the host without its port */
    char *file;
    int line;
    unsigned char *key; /* owned */
    size_t length;
};

static char *lower_new(const char *text)
{
    char *lower = mem_strdup(text);

    for (char *at = lower; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return lower;
}

struct known_hosts *known_hosts_create(const char *name, int port)
{
    struct known_hosts *known = mem_alloc(sizeof *known);
    char *lower = lower_new(name);

    if (port == SSH_PORT || port == 0) {
        known->name = lower;
    } else {
        known->name = mem_printf("[%s]:%d", lower, port);
        known->plain = lower;
    }
    return known;
}

void known_hosts_destroy(struct known_hosts *known)
{
    if (!known)
        return;
    for (size_t i = 0; i < known->count; i++) {
        mem_free_at(&known->entries[i].file);
        mem_free_at(&known->entries[i].key);
    }
    mem_free_at(&known->entries);
    strv_destroy(&known->types);
    mem_free_at(&known->name);
    mem_free_at(&known->plain);
    mem_free_at(&known);
}

/* `field` is |1|SALT|HASH. */
static bool hashed_matches(struct byte_view field, const char *name)
{
    struct name_hasher *hasher;
    struct name_hash hash;
    bool matches;

    if (!name_hash_parse(&hash, field))
        return false;
    hasher = name_hasher_create();
    matches = name_hash_matches(hasher, &hash, name);
    name_hasher_destroy(hasher);
    return matches;
}

static bool names_match(struct byte_view field, const char *name)
{
    if (field.length > 0 && field.at[0] == '|')
        return hashed_matches(field, name);
    return pattern_list_matches((const char *)field.at, field.length, name);
}

static struct byte_view next_word(struct byte_view *line)
{
    struct byte_view word;

    while (line->length > 0 && (line->at[0] == ' ' || line->at[0] == '\t')) {
        line->at++;
        line->length--;
    }
    word.at = line->at;
    word.length = 0;
    while (line->length > 0 && line->at[0] != ' ' && line->at[0] != '\t') {
        line->at++;
        line->length--;
        word.length++;
    }
    return word;
}

/* Takes `key`. */
static void add_entry(struct known_hosts *known, struct known_entry entry)
{
    struct byte_view key = {.at = entry.key, .length = entry.length}, type = key_blob_type(key);

    if (known->count == ENTRIES_MAX) {
        mem_free_at(&entry.key);
        return;
    }
    entry.file = mem_strdup(entry.file);
    MEM_ADD_ROOM(known->entries, known->count, known->room) = entry;
    if (entry.mark != MARK_NONE)
        return;
    for (size_t i = 0; i < known->types.count; i++) {
        if (view_is(type, known->types.items[i]))
            return;
    }
    strv_add_n(&known->types, (const char *)type.at, type.length);
}

/* The names that it is about, and how; `line` goes on behind them. Empty: about none. */
static struct byte_view take_names(struct byte_view *line, enum mark *mark)
{
    static const struct byte_view none = {.at = NULL};
    struct byte_view names = next_word(line);

    *mark = MARK_NONE;
    if (names.length == 0 || names.at[0] == '#')
        return none;
    if (names.at[0] != '@')
        return names;
    if (view_is(names, "@cert-authority"))
        *mark = MARK_AUTHORITY;
    else if (view_is(names, "@revoked"))
        *mark = MARK_REVOKED;
    else
        return none;
    return next_word(line);
}

struct byte_view known_hosts_names(struct byte_view line)
{
    enum mark mark;

    return take_names(&line, &mark);
}

void known_hosts_read_line(struct known_hosts *known, const char *file, int number,
                           struct byte_view line)
{
    struct known_entry entry = {.file = (char *)file, .line = number};
    struct byte_view names = take_names(&line, &entry.mark), type, digits, key;
    ssize_t length;

    if (names.length == 0)
        return;
    if (!names_match(names, known->name)) {
        if (!known->plain || !names_match(names, known->plain))
            return;
        entry.portless = true;
    }
    type = next_word(&line);
    digits = next_word(&line);
    if (digits.length == 0 || digits.length > KEY_MAX)
        return;
    entry.key = mem_alloc(digits.length / 4 * 3 + 3);
    length = base64_decode((const char *)digits.at, digits.length, entry.key);
    key.at = entry.key;
    key.length = length > 0 ? (size_t)length : 0;
    if (type.length == 0 || !view_equal(key_blob_type(key), type)) {
        mem_free_at(&entry.key);
        return;
    }
    entry.length = key.length;
    add_entry(known, entry);
}

bool known_hosts_next_line(struct byte_view *text, struct byte_view *line)
{
    const unsigned char *end;

    if (text->length == 0)
        return false;
    end = memchr(text->at, '\n', text->length);
    line->at = text->at;
    line->length = end ? (size_t)(end - text->at) : text->length;
    text->at += line->length + (end != NULL);
    text->length -= line->length + (end != NULL);
    if (line->length > 0 && line->at[line->length - 1] == '\r')
        line->length--;
    return true;
}

/* The first entry of this mark that has the key (or, with `same_type` only, a key of its type; or,
 * with neither, any). */
enum likeness { SAME_KEY, SAME_TYPE, ANY_KEY };

static const struct known_entry *find(const struct known_hosts *known, enum mark mark,
                                      bool portless, enum likeness likeness, struct byte_view key)
{
    for (size_t i = 0; i < known->count; i++) {
        const struct known_entry *entry = &known->entries[i];
        struct byte_view other = {.at = entry->key, .length = entry->length};

        if (entry->mark != mark || entry->portless != portless)
            continue;
        if (likeness == SAME_KEY && !view_equal(other, key))
            continue;
        if (likeness == SAME_TYPE && !view_equal(key_blob_type(other), key_blob_type(key)))
            continue;
        return entry;
    }
    return NULL;
}

static struct known_answer answer(enum known_verdict verdict, const struct known_entry *entry)
{
    struct known_answer a = {.verdict = verdict};

    if (entry) {
        a.file = entry->file;
        a.line = entry->line;
        a.key.at = entry->key;
        a.key.length = entry->length;
    }
    return a;
}

struct known_answer known_hosts_check(const struct known_hosts *known, struct byte_view key)
{
    /* In this order: a revoked key stays refused wherever else it is listed, and an authority may
     * vouch for a key that the plain lines speak against. */
    static const struct {
        enum mark mark;
        bool portless;
        enum likeness likeness;
        enum known_verdict verdict;
    } rules[] = {
        {MARK_REVOKED, false, SAME_KEY, KNOWN_REVOKED},
        {MARK_REVOKED, true, SAME_KEY, KNOWN_REVOKED},
        {MARK_NONE, false, SAME_KEY, KNOWN_MATCH},
        {MARK_AUTHORITY, false, ANY_KEY, KNOWN_UNDECIDABLE},
        {MARK_NONE, false, SAME_TYPE, KNOWN_CHANGED},
        {MARK_NONE, true, SAME_KEY, KNOWN_MATCH},
        {MARK_AUTHORITY, true, ANY_KEY, KNOWN_UNDECIDABLE},
        {MARK_NONE, false, ANY_KEY, KNOWN_OTHER_TYPE},
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct known_entry *entry =
            find(known, rules[i].mark, rules[i].portless, rules[i].likeness, key);

        if (entry)
            return answer(rules[i].verdict, entry);
    }
    return answer(KNOWN_UNKNOWN, NULL);
}

static int put_hashed(const char *name, const unsigned char *salt, struct buf *out)
{
    struct name_hasher *hasher = name_hasher_create();
    struct name_hash hash;
    int rc;

    memcpy(hash.salt, salt, NAME_HASH_SIZE);
    rc = name_hash_fill(hasher, &hash, name);
    name_hasher_destroy(hasher);
    return rc < 0 ? -1 : name_hash_put(&hash, out);
}

int known_hosts_line(const struct known_hosts *known, struct byte_view key,
                     const unsigned char *salt, struct buf *out)
{
    struct byte_view type = key_blob_type(key);

    if ((salt ? put_hashed(known->name, salt, out) : buf_puts(out, known->name)) < 0)
        return -1;
    if (buf_printf(out, " %.*s ", (int)type.length, (const char *)type.at) < 0 ||
        base64_append(out, key.at, key.length) < 0)
        return -1;
    return buf_putc(out, '\n');
}
