/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the status page, as a user opens it. */
#pragma once

/* `url`: of the server. All addresses of this machine (0.0.0.0 or [::]) become its name. `token`
 * may be NULL: none. The caller frees the result. */
char *page_address_new(const char *url, const char *token);
