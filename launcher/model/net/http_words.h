/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of an HTTP request that decide what it gets: the query of its address, and the name
 * under which it reached the server. Pure; any bytes may come.
 *
 * Values are taken as they are written. None that we expect has a character that must be encoded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_word {
    const char *text; /* borrowed from the query; not terminated */
    size_t length;
};

/* The value of the first "name=value" of a query "a=1&b=2". false: there is none. The query may be
 * NULL. */
bool http_query_find(const char *query, const char *name, struct http_word *out);

/* A number from 0 to `most`. false: it is something else. */
bool http_word_number(const struct http_word *word, int most, int *out);

/* Takes as long for a word that begins like the secret as for any other of its length. */
bool http_word_is_secret(const struct http_word *word, const char *secret);

/* Whether a header Host names the server by an address, or as localhost. A page of another site can
 * make a browser ask this server under a name of that site, but not under these. */
bool http_host_is_address(const char *host);
