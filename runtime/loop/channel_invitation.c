/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/channel_invitation.h"

#include <string.h>

/* Who proves: what one side says is never right from the other one. */
enum role { MEMBER = 'm', ROOT = 'r' };

static void write_rank(uint32_t rank, uint8_t out[4])
{
    for (size_t b = 0; b < 4; b++)
        out[b] = (uint8_t)(rank >> 8 * b);
}

static void prove(const struct invitation *invitation, enum role role,
                  const struct introduction *introduction, uint8_t out[HMAC_SIZE])
{
    uint8_t text[2 + 4 + 2 * NONCE_SIZE] = {(uint8_t)role, (uint8_t)introduction->point};
    write_rank(introduction->rank, text + 2);
    memcpy(text + 6, introduction->root_nonce, NONCE_SIZE);
    memcpy(text + 6 + NONCE_SIZE, introduction->member_nonce, NONCE_SIZE);
    hmac_sha256(invitation->secret, SECRET_SIZE, text, sizeof text, out);
}

void hello_write(const struct invitation *invitation, const struct introduction *introduction,
                 uint8_t out[HELLO_SIZE])
{
    write_rank(introduction->rank, out);
    memcpy(out + 4, introduction->member_nonce, NONCE_SIZE);
    prove(invitation, MEMBER, introduction, out + 4 + NONCE_SIZE);
}

bool hello_read(const struct invitation *invitation, const uint8_t hello[HELLO_SIZE],
                struct introduction *introduction)
{
    uint8_t right[HMAC_SIZE];
    introduction->rank = 0;
    for (size_t b = 0; b < 4; b++)
        introduction->rank |= (uint32_t)hello[b] << 8 * b;
    memcpy(introduction->member_nonce, hello + 4, NONCE_SIZE);
    prove(invitation, MEMBER, introduction, right);
    return hmac_equal(right, hello + 4 + NONCE_SIZE);
}

void welcome_write(const struct invitation *invitation, const struct introduction *introduction,
                   uint8_t out[HMAC_SIZE])
{
    prove(invitation, ROOT, introduction, out);
}

bool welcome_is_right(const struct invitation *invitation, const struct introduction *introduction,
                      const uint8_t welcome[HMAC_SIZE])
{
    uint8_t right[HMAC_SIZE];
    welcome_write(invitation, introduction, right);
    return hmac_equal(right, welcome);
}
