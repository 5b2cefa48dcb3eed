/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS without TLS, for what is done with what a peer says once it is through: how far each
 * handshake comes, what is claimed and what is read and written come from the input. One at a time.
 */
#pragma once

#include "fuzz.h"
#include "io/tls_module.h"

/* All sessions from now on take what they do from here. */
const struct tls_module *fake_tls(struct fuzz_bytes *bytes);
