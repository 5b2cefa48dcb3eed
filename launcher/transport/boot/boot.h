/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boot: from a shell on a host to an agent that speaks frames, over one duplex stream (D12).
 *
 * The stream leads to BOOT_COMMAND, `/bin/sh`. It is one word, so that every login shell (csh and
 * fish too) and `kubectl exec` understand it. The first line that we send is our script. What the
 * host prints before our marker is noise of its login files. It is skipped up to a limit, and its
 * last line is kept for the error message. The script reports the architecture, the C library, and
 * where an agent of this very image is. Only if there is none does the driver send the agent. The
 * script writes it into a file with a name of its own, checks its hash, makes it executable and
 * renames it. Nothing of the user's environment, arguments or secrets is part of this: they travel
 * in frames.
 */
#pragma once

#include <stdbool.h>

#include "io/loop.h"
#include "transport/boot/agent_image.h"
#include "transport/transport.h"

#define BOOT_COMMAND "/bin/sh"

struct boot_events {
    void (*stage)(void *context, enum transport_stage stage); /* START, SEND, AGENT */
    /* The next byte on the stream is the agent's first frame; the descriptor is no longer ours. */
    void (*up)(void *context);
    void (*failed)(void *context, enum transport_stage stage, const char *why);
};

struct boot_config {
    struct loop *loop;
    int fd; /* duplex, a stream socket (bytes are peeked at); stays the caller's */
    struct agent_image *image;
    const char *unique; /* for names of temporary files: job and node */
    int64_t limit_ms;   /* for each stage */
};

struct boot;
struct boot *boot_create(const struct boot_config *config, const struct boot_events *events,
                         void *context);
void boot_destroy(struct boot *boot); /* accepts NULL */

#define BOOT_NOISE_ROOM 240

/* What has come from the host so far. */
struct boot_heard {
    bool answered;               /* a shell of the host has said something */
    bool cut;                    /* the stream has ended, and its maker may know better why */
    char noise[BOOT_NOISE_ROOM]; /* its last line of noise, made printable, or "" */
};
const struct boot_heard *boot_heard(const struct boot *boot); /* borrowed */

/*
 * Why a login by SSH ended before the host ran BOOT_COMMAND. The login shell reads a login file
 * first, as bash reads .bashrc when sshd starts it, and an `exit` there ends the login. Pure.
 */

/* Is `status` one that a login file would choose? Others have meanings of their own: the shell
 * could not run the command (126, 127), a signal ended it (above 128), the ssh program failed
 * (255). */
bool login_end_is_plain(int status);

/* The cause and the remedy. `said`: the last line that the host has printed, or "". The caller
 * frees the text. */
char *login_end_text(int status, const char *said);
