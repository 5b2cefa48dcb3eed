/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a file of bad hosts (--bad-hosts), which hvdrun and people write. Pure. Each line is
 *
 *   HOST [since=TIME] [until=TIME] [job=NAME] [REASON]        # comment
 *
 * TIME is in UTC: 2026-11-27, 2026-11-27T10:33Z or 2026-11-27T10:33:05Z. The host is bad until that
 * time, or for good. HOST is compared with the name in the host list, letter by letter. Of two
 * lines about one host that are in force, the first one counts.
 *
 * A line that is wrong is an error when a job starts. hvdrun cannot know which host it means to
 * leave out, and the file may be another one. When hvdrun writes, it keeps each line that it does
 * not replace, as it is: comments, lines of people, wrong lines.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"

#define BAD_HOSTS_FILE_MAX ((size_t)4 << 20) /* bytes */
#define BAD_HOSTS_MAX 4096                   /* lines with `until`, when hvdrun writes */
#define BAD_HOSTS_SECONDS 604800             /* for which hvdrun remembers a host: a week */
#define BAD_HOSTS_STUCK_SECONDS 21600        /* the same, if it waits for something */
#define BAD_HOSTS_REASON_MAX 240             /* bytes of it that hvdrun writes */

#define BAD_HOST_FOR_GOOD INT64_MAX

struct bad_host {
    char *name;
    int64_t since_s, until_s; /* since 1970; 0: not said; BAD_HOST_FOR_GOOD */
    char *job, *reason;       /* NULL: not said */
};

struct bad_host_list { /* all zero: empty */
    struct bad_host *items;
    size_t count, room;
    struct map by_name;
};

/* Appends a host that is not in the list yet; otherwise it changes nothing. Copies the texts. */
void bad_hosts_add(struct bad_host_list *list, const struct bad_host *host);
const struct bad_host *bad_hosts_find(const struct bad_host_list *list, const char *name);
void bad_hosts_destroy(struct bad_host_list *list);

/* Adds the hosts that are bad at `now_s` to an empty list. `file` is for the error, which names the
 * first wrong line. -1: STATUS_USAGE. */
int bad_hosts_parse(const char *text, size_t length, const char *file, int64_t now_s,
                    struct bad_host_list *out, struct error *err);

/* The file with `news`: without lines that have expired, and with one line for each of the hosts,
 * unless it is bad for good already. The oldest lines go if there are too many. -1: too large. */
int bad_hosts_update(const char *text, size_t length, const struct bad_host_list *news,
                     int64_t now_s, struct buf *out);

/* "b (lost 3 times; job train, since 2026-11-27T10:33:05Z)". */
void bad_hosts_describe(const struct bad_host *host, struct buf *out);
