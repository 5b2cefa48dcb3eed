/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a login by SSH ended before the host ran BOOT_COMMAND. The login shell reads a login file
 * first, as bash reads .bashrc when sshd starts it, and an `exit` there ends the login. Pure.
 */
#pragma once

#include <stdbool.h>

/* Is `status` one that a login file would choose? Others have meanings of their own: the shell
 * could not run the command (126, 127), a signal ended it (above 128), the ssh program failed
 * (255). */
bool login_end_is_plain(int status);

/* The cause and the remedy. `said`: the last line that the host has printed, or "". The caller
 * frees the text. */
char *login_end_text(int status, const char *said);
