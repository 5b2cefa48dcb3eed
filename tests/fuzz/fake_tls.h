/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS without cryptography, to fuzz the code behind a handshake. The input decides how far each
 * handshake gets, which name the peer claims, and what is read and written. One at a time.
 */
#pragma once

#include "fuzz.h"
#include "io/tls_module.h"

/* All sessions from now on take what they do from here. */
const struct tls_module *fake_tls(struct fuzz_bytes *bytes);
