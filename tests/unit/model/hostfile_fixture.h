/* SPDX-License-Identifier: Apache-2.0 */
/* Hostfiles in, one line of text out. Included behind cmocka.h. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/hosts/hostfile.h"
#include "model/settings/option.h"

static void host_traits_text(const struct host *host, struct buf *text)
{
    const struct host_traits *traits = &host->traits;
    if (host->max_slots > 0)
        buf_printf(text, "/%d", host->max_slots);
    if (traits->port > 0)
        buf_printf(text, "+%d", traits->port);
    if (traits->address != NULL)
        buf_printf(text, ">%s", traits->address);
    if (traits->identity != NULL)
        buf_printf(text, " key=%s", traits->identity);
    if (traits->transport != SET_TRANSPORT_AUTO)
        buf_printf(text, " transport=%d", traits->transport);
    if (traits->gpus > 0)
        buf_printf(text, " gpus=%d", traits->gpus);
    if (traits->wdir != NULL)
        buf_printf(text, " wdir=%s", traits->wdir);
    for (size_t i = 0; i < traits->env.count; i++)
        buf_printf(text, " %s", traits->env.items[i]);
}

/* "user@name:slots/max+port>address key=...", '!' after slots that were given; commas between.
 * The caller frees it. */
static char *hosts_text(const struct host_list *list, const char *comma)
{
    struct buf text = BUF_INIT(1 << 24);
    for (size_t i = 0; i < list->count; i++) {
        const struct host *host = &list->items[i];
        buf_puts(&text, i > 0 ? comma : "");
        if (host->traits.user != NULL)
            buf_printf(&text, "%s@", host->traits.user);
        buf_printf(&text, "%s:%d%s", host->name, host->slots, host->slots_given ? "!" : "");
        host_traits_text(host, &text);
    }
    return buf_take(&text);
}

static int read_group(const char *bytes, const char *group, struct host_list *list,
                      struct error *err)
{
    const struct hostfile file = {
        .bytes = bytes, .length = strlen(bytes), .name = "my.hosts", .group = group};
    return hostfile_parse(&file, list, err);
}

static void expect_group(const char *bytes, const char *group, const char *expected)
{
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    if (read_group(bytes, group, &list, &err) < 0)
        fail_msg("'%s' was refused: %s", bytes, err.text);
    char *got = hosts_text(&list, ", ");
    assert_string_equal(got, expected);
    free(got);
    hosts_destroy(&list);
}

static inline void expect_file(const char *bytes, const char *expected)
{
    expect_group(bytes, NULL, expected);
}

static void refuse_bytes(const char *bytes, size_t length, const char *group, const char *place,
                         const char *cause)
{
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    const struct hostfile file = {
        .bytes = bytes, .length = length, .name = "my.hosts", .group = group};
    if (hostfile_parse(&file, &list, &err) == 0)
        fail_msg("'%s' was accepted", bytes);
    if (strncmp(err.text, place, strlen(place)) != 0 || strstr(err.text, cause) == NULL ||
        strstr(err.text, "expected") == NULL)
        fail_msg("'%.200s': \"%s\" lacks '%s', '%s' or 'expected'", bytes, err.text, place, cause);
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(err.status, STATUS_USAGE);
    hosts_destroy(&list);
}

static inline void refuse_file(const char *bytes, const char *place, const char *cause)
{
    refuse_bytes(bytes, strlen(bytes), NULL, place, cause);
}

/* Every beginning of a good file, and every byte of it replaced by each of `bytes`: refused or
 * read, never worse. The first of `bytes` is 0. */
static inline void expect_no_harm(const char *good, size_t size, const char *bytes, size_t count)
{
    for (size_t length = 0; length < size; length++) {
        char *text = mem_dup(good, size);
        for (size_t i = 0; i < count; i++) {
            struct host_list list = {0};
            struct error err = ERROR_INIT;
            text[length] = bytes[i];
            const struct hostfile whole = {.bytes = text, .length = size - 1, .name = "f"};
            const struct hostfile part = {.bytes = text, .length = length, .name = "f"};
            if (hostfile_parse(i == 0 ? &part : &whole, &list, &err) < 0)
                assert_int_equal(err.status, STATUS_USAGE);
            else
                assert_true(list.count > 0);
            hosts_destroy(&list);
        }
        free(text);
    }
}
