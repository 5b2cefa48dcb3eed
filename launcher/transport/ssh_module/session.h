/* SPDX-License-Identifier: Apache-2.0 */
/* A session from the connected socket to the command's streams: the functions of struct ssh_module
 * (transport/ssh_module/ssh_module.h has the contract). */
#pragma once

#include "transport/ssh_module/ssh_module.h"

struct ssh_session *session_create(const struct ssh_host_config *config);
void session_destroy(struct ssh_session *session);
enum ssh_state session_advance(struct ssh_session *session);
enum ssh_state session_reached(const struct ssh_session *session);
int session_wants(const struct ssh_session *session);
const char *session_problem(const struct ssh_session *session);
const char *session_summary(const struct ssh_session *session);
ssize_t session_read(struct ssh_session *session, enum ssh_channel channel, void *bytes,
                     size_t room);
ssize_t session_write(struct ssh_session *session, const void *bytes, size_t length);
int session_send_eof(struct ssh_session *session);
int session_exit_status(const struct ssh_session *session);
