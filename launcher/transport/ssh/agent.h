/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ssh-agent of our own, for keys that only OpenSSH can open: they are decrypted once, by
 * ssh-add, with the first line of --ssh-passphrase-file. The passphrase passes from that file to
 * ssh-add through an askpass helper; it stands in no argv, environment or file of ours.
 *
 * Nothing of it outlives us: the agent dies with our process, and its socket has no name any more
 * once it listens (it is reached through our own descriptor, /proc/PID/fd/N).
 */
#pragma once

#include "base/strv.h"
#include "transport/exec/exec.h"

struct ssh_agent;

/* Starts it and adds the files, which are borrowed for the call. `done` comes once, from the loop,
 * never from within this call: `why` NULL when all were added, else which was not and why (others
 * may have been). */
struct ssh_agent *ssh_agent_start(const struct transport_room *room, char *const *files,
                                  const char *passphrase_file,
                                  void (*done)(void *context, const char *why), void *context);
void ssh_agent_destroy(struct ssh_agent *agent); /* accepts NULL */

const char *ssh_agent_socket(const struct ssh_agent *agent); /* after `done`; NULL: no agent */
