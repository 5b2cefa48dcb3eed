/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file behind the part bad_hosts, as its tests need it. It writes bad hosts into their file, in
 * a thread: the file may be on a server that does not answer. Several jobs can write at once. Each
 * locks the file, reads it, and puts a new one in its place (rename). So a reader sees the old or
 * the new file, and whole. If anything fails, the old file stays as it is.
 */
#pragma once

#include <stdbool.h>

#include "features/bad_hosts/bad_hosts.h"
#include "io/threads.h"

/* Shared with the thread; the last one frees it. */
struct bad_hosts_write {
    struct thread_share share;
    char *path;
    struct bad_host_list news;
    int64_t now_s;
    int result; /* 0, or -1 and why */
    struct error err;
};

/* Takes what `news` owns. */
struct bad_hosts_write *bad_hosts_write_begin(const char *path, struct bad_host_list *news,
                                              int64_t now_s);

/* Waits for the thread, at most so long. */
bool bad_hosts_write_wait(struct bad_hosts_write *write, int64_t limit_ms);
/* A thread that still waits for the file frees it later. Accepts NULL. */
void bad_hosts_write_destroy(struct bad_hosts_write *write);

/* What the thread does. */
int bad_hosts_write_now(const char *path, const struct bad_host_list *news, int64_t now_s,
                        struct error *err);
