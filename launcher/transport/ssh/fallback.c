/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/fallback.h"

#include <stdlib.h>

#include "base/mem.h"

struct ssh_fallback {
    struct exec_transport exec; /* of this host alone: its words hold what was said about it */
    struct transport_target target;
    struct transport_call *call;
};

struct ssh_fallback *ssh_fallback_start(const struct transport_room *room,
                                        const struct ssh_program *program,
                                        const struct transport_target *target,
                                        const struct transport_events *events, void *events_context,
                                        struct error *err)
{
    struct ssh_fallback *fallback = mem_alloc(sizeof(*fallback));
    fallback->exec =
        (struct exec_transport){.room = room, .boot_word = BOOT_COMMAND, .is_ssh = true};
    fallback->target = *target;
    fallback->target.user = program->user;
    fallback->target.port = program->port;
    if (ssh_program_words(program, &fallback->exec.words, err) < 0) {
        ssh_fallback_destroy(fallback);
        return NULL;
    }
    struct transport transport = exec_transport(&fallback->exec);
    fallback->call = transport_call(&transport, &fallback->target, events, events_context);
    return fallback;
}

void ssh_fallback_destroy(struct ssh_fallback *fallback)
{
    if (fallback == NULL)
        return;
    transport_hang_up(fallback->call);
    exec_transport_close(&fallback->exec);
    strv_destroy(&fallback->exec.words);
    free(fallback);
}
