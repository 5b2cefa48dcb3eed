/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/helper_program.h"

#include "base/fd.h"
#include "base/mem.h"

int piped_message_write(int fd, const ProtobufCMessage *message)
{
    size_t length = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes AUTO_FREE = mem_alloc(PIPED_HEADER + length);
    for (int i = 0; i < PIPED_HEADER; i++)
        bytes[i] = (uint8_t)(length >> (8 * i));
    protobuf_c_message_pack(message, bytes + PIPED_HEADER);
    return fd_write_all(fd, bytes, PIPED_HEADER + length);
}

int piped_message_next(const struct buf *bytes, size_t max, const uint8_t **body, size_t *length)
{
    const uint8_t *at = (const uint8_t *)buf_text(bytes);
    if (bytes->length < PIPED_HEADER)
        return 0;
    *body = at + PIPED_HEADER;
    *length = 0;
    for (int i = 0; i < PIPED_HEADER; i++)
        *length |= (size_t)at[i] << (8 * i);
    if (*length > max)
        return -1;
    return bytes->length - PIPED_HEADER >= *length ? 1 : 0;
}
