/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The script that the shell on a host gets, and the words it answers with.
 *
 * It needs only POSIX sh (dash, bash, busybox ash, ksh). It is one compound command, which a shell
 * reads as a whole before it runs it. So only `read` and `head` read what is sent later. The driver
 * sends nothing before the shell has asked: dash reads its input in blocks.
 *
 * An answer is a line with the marker in it; noise without a newline can precede the marker. The
 * script holds the marker in two halves, so that a terminal's echo does not count as an answer.
 *
 *   host KERNEL MACHINE LIBC...   what this host is
 *   terminal                      the input is a terminal, so it cannot carry an image
 *   run PATH                      a good image is there and is started now: `agent` is next
 *   need [PATH]                   there is none; PATH is an installed agent of this very version.
 *                                 The driver answers BOOT_SEND or BOOT_USE
 *   ready FOLDER                  the image's bytes can come now
 *   no FOLDER: REASON             this place cannot be used; the next one follows
 *   fail                          there is no further place
 *   agent                         from hvdrun-agent: frames follow
 */
#pragma once

#include "base/buf.h"
#include "transport/boot/agent_image.h"

#define BOOT_MARKER_ROOM 33
#define BOOT_SEND "send\n"
#define BOOT_USE "use\n"
#define BOOT_SCRIPT_MAX 16384

/* A new random marker: letters and digits. */
void boot_marker(char out[BOOT_MARKER_ROOM]);

/* `unique` must be safe in a file's name; other characters are replaced. */
void boot_script(const struct agent_image *image, const char *marker, const char *unique,
                 struct buf *out);

struct boot_host {
    char kernel[64], machine[64];
    char libc[128]; /* "glibc 2.36", "musl", the first line of ldd --version, or "" */
};

/* From "KERNEL MACHINE LIBC...". */
void boot_host_parse(const char *text, struct boot_host *out);

/* -1: it cannot, and `err` says why and what to do. An unknown fact does not count against it. */
int boot_host_check(const struct boot_host *host, const struct agent_image *image,
                    struct error *err);
