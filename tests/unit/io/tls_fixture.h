/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends of TLS in one process: parties with keys, and an end that is driven by hand. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "io/module_open.h"
#include "io/tls_module.h"

static inline const struct tls_module *tls_fixture_module(void)
{
    struct error err = ERROR_INIT;
    const struct tls_module *module = module_open(HVDRUN_TLS_MODULE, TLS_MODULE_KIND, &err);
    if (module == NULL)
        fail_msg("%s", err.text);
    return module;
}

static inline struct tls_party *tls_fixture_party(bool is_server, uint8_t key_byte,
                                                  const char *identity, uint64_t rekey_bytes)
{
    struct error err = ERROR_INIT;
    struct tls_party_config config = {
        .is_server = is_server, .identity = identity, .rekey_bytes = rekey_bytes};
    memset(config.key, key_byte, sizeof(config.key));
    struct tls_party *party = tls_fixture_module()->party_create(&config, &err);
    if (party == NULL)
        fail_msg("%s", err.text);
    return party;
}

/* A session on a descriptor, which it makes non-blocking. */
static inline struct tls_end tls_fixture_end(struct tls_party *party, int fd)
{
    struct error err = ERROR_INIT;
    const struct tls_module *module = tls_fixture_module();
    fd_nonblock(fd);
    struct tls_end end = {module, module->create(party, fd, &err), fd};
    if (end.session == NULL)
        fail_msg("%s", err.text);
    return end;
}

/* Both, until neither gets on. */
static inline void tls_fixture_shake(struct tls_end *one, struct tls_end *other)
{
    for (int i = 0; i < 20; i++) {
        one->module->advance(one->session);
        other->module->advance(other->session);
    }
}

static inline void tls_fixture_close(struct tls_end *end)
{
    end->module->destroy(end->session);
    fd_close(&end->fd);
}
