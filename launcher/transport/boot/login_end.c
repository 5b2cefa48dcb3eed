/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/boot/login_end.h"

#include "base/mem.h"
#include "base/status.h"
#include "transport/boot/boot.h"

bool login_end_is_plain(int status)
{
    return status >= 0 && status < STATUS_NOT_EXECUTABLE;
}

char *login_end_text(int status, const char *said)
{
    return mem_printf("the login ended with exit status %d before the host ran %s: most likely a "
                      "login file there (.bashrc, .cshrc) exits, or the account has a forced "
                      "command; 'ssh HOST true' must succeed and print nothing%s%s",
                      status, BOOT_COMMAND, said[0] == '\0' ? "" : "; the host said: ", said);
}
