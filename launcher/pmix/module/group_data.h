/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the members of a group give each other while it is constructed: what they have put and
 * committed, and what they say of themselves (PMIX_GROUP_INFO, such as Open MPI's local ids of a
 * communicator). PMIx hands us that of the members of this node, and wants back that of all nodes.
 * In between, it is bytes: those of several nodes, one after the other, are those of all. They
 * begin with the major version of libpmix, as others have other forms.
 *
 * libpmix 4 and 5 have one blob for all local members. Later ones have an array for each member,
 * and take what was put through PMIx_server_register_resources().
 */
#pragma once

#include "pmix/module/infos.h"

/* Of this node's members, as PMIx asks for the group. The caller frees *bytes. May run on PMIx's
 * thread. */
pmix_status_t group_data_pack(const pmix_info_t *directives, size_t count, char **bytes,
                              size_t *length);

/* Adds what the answer to PMIx has of the data of all nodes to `answer`, and to `resources` what
 * PMIx takes apart from that. Reads the bytes of other nodes with suspicion: another status than
 * PMIX_SUCCESS means that they are not what group_data_pack() makes. PMIX_ERR_NOT_SUPPORTED: nodes
 * with data have different versions of libpmix. */
pmix_status_t group_data_unpack(const char *bytes, size_t length, struct infos *answer,
                                struct infos *resources);
