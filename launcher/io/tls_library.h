/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the TLS module: only a job whose agents dial back needs OpenSSL for it (D12). */
#pragma once

#include "io/tls_module.h"

/* NULL: `err` says why (OpenSSL is not installed, or the module is of another version). Never
 * closed again. */
const struct tls_module *tls_library_open(const char *path, struct error *err);
