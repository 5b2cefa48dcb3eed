/* SPDX-License-Identifier: Apache-2.0 */
/* What known_hosts files say about one host, and the files of a job. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"
#include "transport/ssh_module/fields.h"
#include "transport/ssh_module/ssh_module.h"

/*
 * known_hosts.c: what known_hosts files say about one host: a parser of lines, without a file or a
 * clock. transport/ssh_module/known_files.c decides which lines it gets. (libssh2's own parser
 * ignores wildcards and markers, and would accept a revoked key.)
 *
 * It understands what sshd(8) describes: comma lists, `*` and `?`, `!`, `[name]:port`, hashed
 * names, @cert-authority, @revoked, comments. Lines that make no sense are skipped, as OpenSSH
 * does.
 *
 * As with OpenSSH's defaults (CheckHostIP no), a host is known by its name alone, never by its
 * address. On another port than 22 its name is `[name]:port`. If that is not known, the same key
 * under the plain name is enough, as in OpenSSH. A different key there never counts against the
 * host.
 */

enum known_verdict {
    KNOWN_MATCH,
    KNOWN_UNKNOWN,
    KNOWN_CHANGED,     /* a key of this type is known, and it is another one */
    KNOWN_OTHER_TYPE,  /* only keys of other types are known */
    KNOWN_REVOKED,     /* this very key */
    KNOWN_UNDECIDABLE, /* a certificate authority speaks for the host, and no plain key matches */
};

struct known_answer {
    enum known_verdict verdict;
    /* The line that decided (NULL, 0 when none did); borrowed from the known_hosts. */
    const char *file;
    int line;
    struct byte_view key;
};

struct known_hosts { /* the lines that match one host */
    char *name;      /* as lines name it: "name" or "[name]:port", in small letters */
    char *plain;     /* without the port; NULL when it is the same */
    struct known_entry *entries;
    size_t count, room;
    struct strv types; /* of the plain keys, in order, without repetition */
};

struct known_hosts *known_hosts_create(const char *name, int port);
void known_hosts_destroy(struct known_hosts *known); /* accepts NULL */

/* Adds what this line says, if it is about the host; `file` is its file's name for messages. */
void known_hosts_read_line(struct known_hosts *known, const char *file, int number,
                           struct byte_view line);

/* Takes the next line of a file's text, without its end; false: there is none. */
bool known_hosts_next_line(struct byte_view *text, struct byte_view *line);

/* The field of a line that lists the names; empty when the line is about none. */
struct byte_view known_hosts_names(struct byte_view line);

struct known_answer known_hosts_check(const struct known_hosts *known, struct byte_view key);

/* A line for this host and key, with a line end; `salt` (20 bytes) hashes the name, NULL leaves it
 * readable. -1: over the limit of `out`, or OpenSSL has no SHA-1. */
int known_hosts_line(const struct known_hosts *known, struct byte_view key,
                     const unsigned char *salt, struct buf *out);

/*
 * Names as known_hosts hides them, "|1|SALT|HASH": the HMAC-SHA1 of the name under a salt of the
 * line's own. They cannot be looked up: each line is tried with each name, so a try must cost
 * little.
 */

#define NAME_HASH_SIZE 20 /* bytes of a salt, and of a hash */

struct name_hash {
    unsigned char salt[NAME_HASH_SIZE], hash[NAME_HASH_SIZE];
};

struct name_hasher; /* what OpenSSL needs for it, made once for many */

struct name_hasher *name_hasher_create(void);
void name_hasher_destroy(struct name_hasher *hasher); /* accepts NULL */

/* False: this is not such a field. */
bool name_hash_parse(struct name_hash *out, struct byte_view field);

bool name_hash_matches(struct name_hasher *hasher, const struct name_hash *hash, const char *name);

/*
 * known_files.c: the known_hosts files of a job. Each is read when the first host is looked up in
 * it. It is read again only when stat(2) shows that it was written to, as we do ourselves for a new
 * host.
 *
 * A host is looked up by its name: a job of thousands of hosts does not read as many lines for each
 * of them. Patterns, and hashed names that no host has matched yet, are tried with each host.
 */

struct ssh_known_files *known_files_create(void);
void known_files_destroy(struct ssh_known_files *files); /* accepts NULL */

/* Adds what these files (NULL-ended; NULL: none) say about the host. Those that cannot be read are
 * skipped, as OpenSSH does. -1: one is too large, so that nothing can be said about any host. */
int known_files_find(struct ssh_known_files *files, char *const *paths, struct known_hosts *known,
                     struct error *err);

/* Appends a line for the host and its key to the file, with one write, so that the other lines and
 * other writers are safe. Creates the file, and a folder for it. `hash_name`: as HashKnownHosts. */
int known_files_append(struct ssh_known_files *files, const char *path,
                       const struct known_hosts *known, struct byte_view key, bool hash_name,
                       struct error *err);
