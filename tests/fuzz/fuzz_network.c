/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is --network-interfaces (words with commas). Each other line is an interface that
 * a node reports. Half of these belong to a second node. */
#include "base/strv.h"
#include "fuzz.h"
#include "model/net/address.h"
#include "model/net/network.h"

static void split(const char *text, struct strv *words)
{
    for (; *text != '\0'; text += *text == ',') {
        size_t length = strcspn(text, ",");
        if (length > 0)
            strv_add_n(words, text, length);
        text += length;
    }
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    char *filter AUTO_FREE = fuzz_line(&bytes);
    AUTO_STRV struct strv words = STRV_INIT, lines = STRV_INIT;
    struct network_address all[64], passed[64];
    struct error err = ERROR_INIT;
    size_t count = 0;
    split(filter, &words);
    while (bytes.left > 0 && lines.count < 64) {
        strv_add_take(&lines, fuzz_line(&bytes));
        count += network_address_parse_line(lines.items[lines.count - 1], &all[count]);
    }
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(all[i].prefix >= 0 && all[i].prefix <= (all[i].ipv6 ? 128 : 32));
        free(network_address_subnet(&all[i]));
        network_address_same_subnet(&all[i], &all[0]);
    }
    fuzz_check_error(network_filter_check(strv_items(&words), &err), &err);
    FUZZ_CHECK(network_filter_apply(strv_items(&words), all, count, passed) <= count);
    size_t half = lines.count / 2;
    struct network_node nodes[2] = {
        {.name = "a", .boot_id = "1", .interfaces = strv_items(&lines), .interface_count = half},
        {.name = "b",
         .boot_id = size % 2 == 0 ? "1" : "2",
         .interfaces = strv_items(&lines) + half,
         .interface_count = lines.count - half,
         .reached_by = half > 0 ? "10.0.0.1" : NULL}};
    char *addresses[2] = {NULL, NULL};
    if (network_choose(nodes, 2, size % 3 == 0, strv_items(&words), addresses, &err) == 0) {
        FUZZ_CHECK(addresses[0] != NULL && addresses[1] != NULL);
        free(addresses[0]);
        free(addresses[1]);
    }
    return 0;
}
