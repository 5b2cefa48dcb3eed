/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts OpenSSH's configuration treats alike, so that `ssh -G`, which takes longer than a
 * whole login of ours, need be asked about one of them only.
 *
 * A line of the configuration counts or not by the patterns of the Host lines; hosts that the same
 * patterns match are told the same, but for what names the host: HostName, and %-tokens. So hosts
 * are alike when the same patterns match them, whatever file includes which, and none of the
 * sections that are theirs has one of these. With a Match line, or anything that is not understood,
 * no host is like any other. Pure.
 */
#pragma once

#include <stddef.h>

struct ssh_sections;

struct ssh_sections *ssh_sections_create(void);
void ssh_sections_destroy(struct ssh_sections *sections); /* accepts NULL */

/* A file of its own begins (none that another one includes). */
void ssh_sections_begin(struct ssh_sections *sections);

/* Reads a file's text. `include` is called with what stands behind an Include, and is to read those
 * files with the same function before it returns. */
void ssh_sections_read(struct ssh_sections *sections, const char *text, size_t length,
                       void (*include)(void *context, const char *value), void *context);

/* There is more that could not be read. */
void ssh_sections_doubt(struct ssh_sections *sections);

/* A text that is equal for hosts that are alike, the caller's; NULL: this one is like no other. */
char *ssh_sections_class(const struct ssh_sections *sections, const char *host);
