/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a Horovod worker to a notification, as bytes and as a body with the right head. It
 * means the same however it is cut into pieces, and only a signed acknowledgement counts. */
#include "base/sha256.h"
#include "fuzz.h"
#include "rendezvous/notification.h"

#define KEY "0123456789abcdef"

static enum notification_verdict feed(const uint8_t *bytes, size_t size, size_t cut)
{
    struct notification_reply *reply = notification_reply_create(KEY, sizeof(KEY) - 1);
    enum notification_verdict verdict = notification_reply_feed(reply, bytes, cut);
    if (verdict == NOTIFICATION_MORE)
        verdict = notification_reply_feed(reply, bytes + cut, size - cut);
    FUZZ_CHECK((verdict == NOTIFICATION_BAD) == (notification_reply_problem(reply)[0] != '\0'));
    notification_reply_destroy(reply);
    return verdict;
}

static void read_signed(const uint8_t *data, size_t size, size_t cut)
{
    int32_t length = (int32_t)size;
    size_t whole = HMAC_SIZE + sizeof(length) + size;
    uint8_t *message AUTO_FREE = mem_alloc(whole + 1);
    hmac_sha256(KEY, sizeof(KEY) - 1, data, size, message);
    memcpy(message + HMAC_SIZE, &length, sizeof(length));
    if (size > 0)
        memcpy(message + HMAC_SIZE + sizeof(length), data, size);
    bool right = size > 0 && size <= NOTIFICATION_REPLY_MAX &&
                 memmem(data, size,
                        "\x8c\x0b"
                        "AckResponse",
                        13) != NULL;
    enum notification_verdict verdict = feed(message, whole, cut % whole);
    FUZZ_CHECK(verdict == (right ? NOTIFICATION_ACKNOWLEDGED : NOTIFICATION_BAD));
    message[cut % HMAC_SIZE] ^= 1;
    FUZZ_CHECK(feed(message, whole, whole) == NOTIFICATION_BAD);
}

FUZZ_TARGET
{
    size_t cut = size == 0 ? 0 : data[0];
    FUZZ_CHECK(feed(data, size, size) == feed(data, size, size == 0 ? 0 : cut % size));
    read_signed(data, size, cut);
    return 0;
}
