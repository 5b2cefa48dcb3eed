/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boot: from a shell on a host to an agent that speaks frames, over one duplex stream (D12).
 *
 * The stream leads to `/bin/sh` (BOOT_COMMAND: one word, so that no login shell, csh or fish, and
 * no `kubectl exec` can take it amiss). The first line sent is our script; what the host prints
 * before our marker is noise of its login files and skipped up to a limit, kept for the error
 * message. The script says architecture, libc and where an agent of this very image lies; only if
 * there is none it is sent: into a name of its own, checked by hash, made executable, renamed.
 * Nothing of the user's environment, arguments or secrets is part of any of this: they travel in
 * frames.
 */
#pragma once

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

/* What the host printed that was not ours: its last line, made printable, or "". Borrowed. */
const char *boot_noise(const struct boot *boot);

/* In failed(): the stream has ended, and whoever made it may know better why. */
bool boot_was_cut(const struct boot *boot);
bool boot_has_answered(const struct boot *boot); /* a shell of the host has said something */
