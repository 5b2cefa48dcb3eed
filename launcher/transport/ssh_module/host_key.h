/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a host is the one we know. The policy on top of known_hosts:
 *
 *   the key is listed                  accepted
 *   it is revoked                      refused, whatever the policy
 *   another key of its type is listed  refused, with both fingerprints
 *   only other types are listed        refused too: a host must not get around a known key by
 *                                      showing one of another type
 *   an authority speaks for the host   left to the ssh program, which can ask for certificates
 *   nothing is listed                  accepted and appended; with SSH_HOST_STRICT refused
 *
 * SSH_HOST_ANY accepts all but revoked keys. libssh2 cannot ask for some listed types (RSA before
 * 1.11: SHA-1 only). For such a host another type proves nothing, and the ssh program decides.
 */
#pragma once

#include <libssh2.h>

#include "transport/ssh_module/known_hosts.h"
#include "transport/ssh_module/ssh_module.h"

enum host_key_result { HOST_KEY_ACCEPTED, HOST_KEY_REFUSED, HOST_KEY_FALLBACK };

/* Asks for the listed types first. */
void host_key_prefer(LIBSSH2_SESSION *session, const struct known_hosts *known);

/* After the handshake. `text` becomes the problem, or what was accepted ("host key TYPE
 * FINGERPRINT, new, added to FILE"). */
enum host_key_result host_key_judge(LIBSSH2_SESSION *session, const struct known_hosts *known,
                                    const struct ssh_host_config *config, struct buf *text);
