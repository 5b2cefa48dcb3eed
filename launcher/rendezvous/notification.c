/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/notification.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sha256.h"

enum { HEAD = HMAC_SIZE + 4 };

/* SHORT_BINUNICODE */
static void put_text(struct buf *body, const char *text)
{
    buf_putc(body, '\x8c');
    buf_putc(body, (char)strlen(text));
    buf_puts(body, text);
}

/* BININT, or LONG1 for what does not fit its 31 bits. */
static void put_number(struct buf *body, uint64_t number)
{
    uint8_t bytes[9] = {0}; /* with a byte of sign */
    size_t length = 4;
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    if (number <= INT32_MAX) {
        buf_putc(body, 'J');
    } else {
        while (length < 8 && number >> (8 * length) != 0)
            length++;
        if ((bytes[length - 1] & 0x80) != 0)
            length++;
        buf_putc(body, '\x8a');
        buf_putc(body, (char)length);
    }
    buf_append(body, bytes, length);
}

static void write_body(struct buf *body, uint64_t timestamp, int result)
{
    buf_puts(body, "\x80\x04"); /* PROTO 4, which every Python 3 since 3.4 reads */
    put_text(body, "horovod.runner.elastic.worker");
    put_text(body, "HostsUpdatedRequest");
    buf_puts(body, "\x93)\x81}("); /* STACK_GLOBAL, (), NEWOBJ, {}, MARK */
    put_text(body, "timestamp");
    put_number(body, timestamp);
    put_text(body, "res");
    buf_putc(body, 'K');
    buf_putc(body, (char)result);
    buf_puts(body, "ub."); /* SETITEMS, BUILD, STOP */
}

size_t notification_write_request(uint8_t out[NOTIFICATION_REQUEST_MAX], const void *key,
                                  size_t key_length, uint64_t timestamp, int result)
{
    AUTO_BUF struct buf body = BUF_INIT(NOTIFICATION_REQUEST_MAX - HEAD);
    write_body(&body, timestamp, result);
    int32_t length = (int32_t)body.length;
    hmac_sha256(key, key_length, buf_text(&body), body.length, out);
    memcpy(out + HMAC_SIZE, &length, sizeof(length));
    memcpy(out + HEAD, buf_text(&body), body.length);
    return HEAD + body.length;
}

struct notification_reply {
    struct buf bytes; /* the message so far */
    uint8_t *key;
    size_t key_length;
    enum notification_verdict verdict;
    const char *problem;
};

struct notification_reply *notification_reply_create(const void *key, size_t key_length)
{
    struct notification_reply *reply = mem_alloc(sizeof(*reply));
    buf_init(&reply->bytes, HEAD + NOTIFICATION_REPLY_MAX);
    reply->key = key_length > 0 ? mem_dup(key, key_length) : NULL;
    reply->key_length = key_length;
    reply->problem = "";
    return reply;
}

void notification_reply_destroy(struct notification_reply *reply)
{
    if (reply == NULL)
        return;
    buf_destroy(&reply->bytes);
    free(reply->key);
    free(reply);
}

const char *notification_reply_problem(const struct notification_reply *reply)
{
    return reply->problem;
}

static void refuse(struct notification_reply *reply, const char *problem)
{
    reply->verdict = NOTIFICATION_BAD;
    reply->problem = problem;
}

/* The length that the head announces; 0: the head is not complete, or its length is nonsense. */
static size_t announced(struct notification_reply *reply)
{
    int32_t length = 0;
    if (reply->bytes.length < HEAD)
        return 0;
    memcpy(&length, buf_text(&reply->bytes) + HMAC_SIZE, sizeof(length));
    if (length > 0 && length <= NOTIFICATION_REPLY_MAX)
        return (size_t)length;
    refuse(reply, "sends an answer with an invalid length");
    return 0;
}

static void judge(struct notification_reply *reply, size_t length)
{
    static const char ack[] = "\x8c\x0b"
                              "AckResponse";
    const uint8_t *message = (const uint8_t *)buf_text(&reply->bytes);
    uint8_t mac[HMAC_SIZE];
    hmac_sha256(reply->key, reply->key_length, message + HEAD, length, mac);
    if (!hmac_equal(mac, message))
        refuse(reply, "sends an answer with a wrong digest");
    else if (memmem(message + HEAD, length, ack, sizeof(ack) - 1) == NULL)
        refuse(reply, "sends an answer that is not an acknowledgement");
    else
        reply->verdict = NOTIFICATION_ACKNOWLEDGED;
}

enum notification_verdict notification_reply_feed(struct notification_reply *reply,
                                                  const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    while (length > 0 && reply->verdict == NOTIFICATION_MORE) {
        size_t wanted = HEAD + announced(reply);
        size_t missing = wanted - reply->bytes.length;
        size_t piece = length < missing ? length : missing;
        if (reply->verdict != NOTIFICATION_MORE)
            break;
        buf_append(&reply->bytes, at, piece);
        at += piece;
        length -= piece;
        size_t body = announced(reply);
        if (body > 0 && reply->bytes.length == HEAD + body)
            judge(reply, body);
    }
    return reply->verdict;
}
