/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shell on a host is told, and the words it answers with.
 *
 * Only POSIX sh (dash, bash, busybox ash, ksh): one compound command, which a shell has read as a
 * whole before it runs it, so that what is sent later is read by `read` and `head` alone. Nothing
 * may be sent before the shell has asked: dash reads its input in blocks.
 *
 * An answer is a line that has the marker in it: noise without a newline may stand before it. The
 * script holds the marker in two halves, so that a terminal's echo is no answer.
 *
 *   host KERNEL MACHINE LIBC...   what this host is
 *   terminal                      input is a terminal, which is no way for an image
 *   run PATH                      a good image is there and is started now: agent is next
 *   need [PATH]                   none is; PATH is an installed agent of this very version. The
 *                                 driver answers BOOT_SEND or BOOT_USE
 *   ready FOLDER                  the image's bytes can come now
 *   no FOLDER: REASON             this place will not do; the next one follows
 *   fail                          no place is left
 *   agent                         by hvdrun-agent itself: frames follow
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
