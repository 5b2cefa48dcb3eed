/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/cipher.h"

#include <string.h>

#include "base/buf.h"

#define FAST "aes128-ctr"

static void prefer(LIBSSH2_SESSION *session, int direction)
{
    const char **names = NULL;
    int count = libssh2_session_supported_algs(session, direction, &names);
    AUTO_BUF struct buf list = BUF_INIT(1024);

    for (int first = 1; first >= 0; first--) {
        for (int i = 0; i < count; i++) {
            if ((strcmp(names[i], FAST) == 0) == (first == 1))
                (void)buf_printf(&list, "%s%s", list.length > 0 ? "," : "", names[i]);
        }
    }
    if (list.length > 0)
        (void)libssh2_session_method_pref(session, direction, buf_text(&list));
    if (count > 0)
        libssh2_free(session, names);
}

void cipher_prefer(LIBSSH2_SESSION *session)
{
    prefer(session, LIBSSH2_METHOD_CRYPT_CS);
    prefer(session, LIBSSH2_METHOD_CRYPT_SC);
}
