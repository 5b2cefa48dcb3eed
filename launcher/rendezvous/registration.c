/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/registration.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rendezvous/pickle.h"

static int digit_value(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

/* One line with its padding, as Python writes it. `out` has room for 3 bytes of every 4. */
static int decode_base64(const char *text, size_t length, uint8_t *out, size_t *out_length)
{
    size_t padding = 0, written = 0;
    uint32_t bits = 0;
    if (length == 0 || length % 4 != 0)
        return -1;
    while (padding < 2 && text[length - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < length; i++) {
        int value = i < length - padding ? digit_value(text[i]) : 0;
        if (value < 0)
            return -1;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 != 3)
            continue;
        for (int shift = 16; shift >= 0; shift -= 8)
            out[written++] = (uint8_t)(bits >> shift);
        bits = 0;
    }
    *out_length = written - padding;
    return 0;
}

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
    uint8_t *bytes AUTO_FREE = mem_alloc(length + 1);
    size_t bytes_length = 0;
    if (decode_base64(body, length, bytes, &bytes_length) < 0)
        return error_set(err, "it is not base64");
    struct pickle pickle;
    if (pickle_read(bytes, bytes_length, &pickle, err) < 0)
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
