/* SPDX-License-Identifier: Apache-2.0 */
/* What Horovod's workers say: pickles, the registration that holds one, the answer to a
 * notification. */
#include "fuzz.h"
#include "rendezvous/notification.h"
#include "rendezvous/pickle.h"

static void check_pickle(const struct pickle *pickle)
{
    FUZZ_CHECK(pickle->root < pickle->count);
    for (size_t i = 0; i < pickle->count; i++) {
        const struct pickle_value *value = &pickle->values[i];
        bool holds =
            value->kind == PICKLE_TUPLE || value->kind == PICKLE_LIST || value->kind == PICKLE_DICT;
        for (size_t k = 0; holds && k < value->length; k++)
            FUZZ_CHECK(value->items[k] < pickle->count);
        FUZZ_CHECK(value->kind != PICKLE_DICT || value->length % 2 == 0);
    }
}

FUZZ_TARGET
{
    struct pickle pickle = {.count = 0};
    struct registration registration = {.count = 0};
    struct error err = ERROR_INIT;
    int result = pickle_read(data, size, &pickle, &err);
    fuzz_check_error(result, &err);
    if (result == 0)
        check_pickle(&pickle);
    pickle_destroy(&pickle);
    result = registration_read(data, size, &registration, &err);
    fuzz_check_error(result, &err);
    FUZZ_CHECK(result < 0 || (registration.count > 0 && registration.key_length > 0));
    registration_destroy(&registration);
    struct notification_reply *reply = notification_reply_create("key", 3);
    size_t half = size / 2;
    if (notification_reply_feed(reply, data, half) == NOTIFICATION_MORE)
        notification_reply_feed(reply, data + half, size - half);
    notification_reply_problem(reply);
    notification_reply_destroy(reply);
    return 0;
}
