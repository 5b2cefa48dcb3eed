/* SPDX-License-Identifier: Apache-2.0 */
/* The table by which the launcher knows this module: its only symbol. */
#include "transport/ssh_module/key.h"
#include "transport/ssh_module/known_hosts.h"
#include "transport/ssh_module/parts.h"
#include "transport/ssh_module/ssh_module.h"

extern const struct ssh_module hvdrun_ssh_module;

__attribute__((visibility("default"))) const struct ssh_module hvdrun_ssh_module = {
    .version = SSH_MODULE_VERSION,
    .keys_create = keys_create,
    .keys_destroy = keys_destroy,
    .known_files_create = known_files_create,
    .known_files_destroy = known_files_destroy,
    .create = session_create,
    .destroy = session_destroy,
    .advance = session_advance,
    .wants = session_wants,
    .problem = session_problem,
    .summary = session_summary,
    .read = session_read,
    .write = session_write,
    .send_eof = session_send_eof,
    .exit_status = session_exit_status,
    .reached = session_reached,
};
