/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/notification.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "rendezvous/pickle.h"

/* The registration. */

static const struct pickle_value *value_at(const struct pickle *pickle, uint32_t index)
{
    return &pickle->values[index];
}

static const struct pickle_value *item(const struct pickle *pickle,
                                       const struct pickle_value *container, size_t at)
{
    return value_at(pickle, container->items[at]);
}

static int copy_name(const struct pickle_value *value, struct registration_address *out,
                     struct error *err)
{
    if (value->kind != PICKLE_TEXT || value->length == 0 ||
        value->length > REGISTRATION_INTERFACE_MAX)
        return error_set(err, "an interface has no proper name");
    for (size_t i = 0; i < value->length; i++) {
        if (value->data[i] <= ' ' || value->data[i] == 0x7f)
            return error_set(err, "an interface has no proper name");
        out->interface[i] = value->data[i] < 0x7f ? (char)value->data[i] : '?';
    }
    out->interface[value->length] = '\0';
    return 0;
}

static int copy_address(const struct pickle_value *value, struct registration_address *out,
                        struct error *err)
{
    struct in_addr address;
    if (value->kind == PICKLE_TEXT && value->length < sizeof(out->text) &&
        memchr(value->data, '\0', value->length) == NULL) {
        memcpy(out->text, value->data, value->length);
        out->text[value->length] = '\0';
        if (inet_pton(AF_INET, out->text, &address) == 1)
            return 0;
    }
    return error_set(err, "an address of interface %s is not an IPv4 address", out->interface);
}

static int add_address(struct registration *registration, struct registration_address *address,
                       const struct pickle *pickle, const struct pickle_value *pair,
                       struct error *err)
{
    if (pair->kind != PICKLE_TUPLE || pair->length != 2)
        return error_set(err, "an address of interface %s is not a pair of address and port",
                         address->interface);
    if (copy_address(item(pickle, pair, 0), address, err) < 0)
        return -1;
    const struct pickle_value *port = item(pickle, pair, 1);
    if (port->kind != PICKLE_INT || port->number < 1 || port->number > UINT16_MAX)
        return error_set(err, "the port of address %s is not a valid port", address->text);
    address->port = (uint16_t)port->number;
    if (registration->count == REGISTRATION_ADDRESSES_MAX)
        return error_set(err, "it has more than %d addresses", REGISTRATION_ADDRESSES_MAX);
    registration->addresses[registration->count++] = *address;
    return 0;
}

static int take_addresses(struct registration *registration, const struct pickle *pickle,
                          const struct pickle_value *interfaces, struct error *err)
{
    if (interfaces->kind != PICKLE_DICT)
        return error_set(err, "its addresses are not a dictionary");
    registration->addresses =
        mem_array(REGISTRATION_ADDRESSES_MAX, sizeof(*registration->addresses));
    for (size_t i = 0; i + 1 < interfaces->length; i += 2) {
        struct registration_address address = {.port = 0};
        const struct pickle_value *list = item(pickle, interfaces, i + 1);
        if (copy_name(item(pickle, interfaces, i), &address, err) < 0)
            return -1;
        if (list->kind != PICKLE_LIST)
            return error_set(err, "the addresses of interface %s are not a list",
                             address.interface);
        for (size_t j = 0; j < list->length; j++) {
            if (add_address(registration, &address, pickle, item(pickle, list, j), err) < 0)
                return -1;
        }
    }
    return registration->count > 0 ? 0 : error_set(err, "it has no address");
}

static int take_pickle(struct registration *registration, const struct pickle *pickle,
                       struct error *err)
{
    const struct pickle_value *root = value_at(pickle, pickle->root);
    if (root->kind != PICKLE_TUPLE || root->length != 2)
        return error_set(err, "it is not a pair of addresses and key");
    const struct pickle_value *key = item(pickle, root, 1);
    if (key->kind != PICKLE_BYTES || key->length == 0 || key->length > sizeof(registration->key))
        return error_set(err, "its key does not consist of 1 to %d bytes", REGISTRATION_KEY_MAX);
    memcpy(registration->key, key->data, key->length);
    registration->key_length = key->length;
    return take_addresses(registration, pickle, item(pickle, root, 0), err);
}

static int read_body(const void *body, size_t length, struct registration *out, struct error *err)
{
    if (length > REGISTRATION_BODY_MAX)
        return error_set(err, "it has more than %d bytes", REGISTRATION_BODY_MAX);
    uint8_t *bytes AUTO_FREE = mem_alloc(length / 4 * 3 + 3);
    ssize_t decoded = base64_decode(body, length, bytes);
    /* Python writes one line with its padding: nothing else is in it. */
    if (length == 0 || length % 4 != 0 || decoded < 0 || (size_t)decoded + 2 < length / 4 * 3)
        return error_set(err, "it is not base64");
    struct pickle pickle;
    if (pickle_read(bytes, (size_t)decoded, &pickle, err) < 0)
        return -1;
    int result = take_pickle(out, &pickle, err);
    pickle_destroy(&pickle);
    return result;
}

int registration_read(const void *body, size_t length, struct registration *out, struct error *err)
{
    *out = (struct registration){.addresses = NULL};
    if (read_body(body, length, out, err) == 0)
        return 0;
    registration_destroy(out);
    return error_wrap(err, "the worker's registration cannot be read");
}

void registration_destroy(struct registration *registration)
{
    free(registration->addresses);
    *registration = (struct registration){.addresses = NULL};
}

/* The request and its answer. */

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
    int32_t body = 0;
    size_t room = reply->bytes.limit - reply->bytes.length;
    if (reply->verdict != NOTIFICATION_MORE)
        return reply->verdict;
    buf_append(&reply->bytes, bytes, length < room ? length : room);
    if (reply->bytes.length < HEAD)
        return reply->verdict;
    memcpy(&body, buf_text(&reply->bytes) + HMAC_SIZE, sizeof(body));
    if (body <= 0 || body > NOTIFICATION_REPLY_MAX)
        refuse(reply, "sends an answer with an invalid length");
    else if (reply->bytes.length >= HEAD + (size_t)body)
        judge(reply, (size_t)body);
    return reply->verdict;
}
