/* SPDX-License-Identifier: Apache-2.0 */
/* The text about ranks that wait, and the texts of /proc by which they are known. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "features/torch_store/torch_waits.h"

static void expect(const struct torch_rank *ranks, size_t count, size_t strangers, const char *text)
{
    struct buf out AUTO_BUF = BUF_INIT(8192);
    torch_waits_text(ranks, count, strangers, &out);
    assert_string_equal(buf_text(&out), text);
}

static void test_text(void **state)
{
    (void)state;
    struct torch_rank ranks[] = {{0, "a", true, true, "k", 0, 12345},
                                 {1, "a", true, true, "k", 1, 12999},
                                 {2, "b", true, true, "other", 0, 9000},
                                 {3, "c", true, false, NULL, 0, 0},
                                 {4, "d", true, false, NULL, 0, 0}};
    expect(ranks, 0, 0, "");
    expect(ranks, 5, 0,
           "ranks 0-2 wait in PyTorch's store for 'k' and 1 other key, for 12 s; ranks 3-4 on c, d "
           "are "
           "not connected to it");
    expect(
        ranks, 4, 2,
        "ranks 0-2 and 2 other clients wait in PyTorch's store for 'k' and 1 other key, for 12 s; "
        "rank 3 on c is not connected to it");
    ranks[3].known = ranks[4].known = false; /* their agents have not answered */
    expect(ranks, 5, 0, "ranks 0-2 wait in PyTorch's store for 'k' and 1 other key, for 12 s");
    ranks[3].known = ranks[3].connected = true;
    expect(
        ranks + 1, 3, 0,
        "ranks 1-2 wait in PyTorch's store for 'k' and 1 other key, for 12 s; rank 3 on c does not "
        "wait");
    expect(ranks, 1, 0, "rank 0 waits in PyTorch's store for 'k', for 12 s");
    expect(ranks + 2, 3, 0, ""); /* not for long enough */
}

/* As the kernel writes them, on a machine of any byte order. */
static void line(struct buf *out, const char *local, int port, const char *remote, int remote_port,
                 int status, int inode)
{
    const char *addresses[] = {local, remote};
    int ports[] = {port, remote_port};
    buf_puts(out, "   1:");
    for (int i = 0; i < 2; i++) {
        uint32_t words[4];
        bool six = inet_pton(AF_INET, addresses[i], words) != 1;
        if (six)
            assert_int_equal(inet_pton(AF_INET6, addresses[i], words), 1);
        buf_putc(out, ' ');
        for (int j = 0; j < (six ? 4 : 1); j++)
            buf_printf(out, "%08X", words[j]);
        buf_printf(out, ":%04X", ports[i]);
    }
    buf_printf(out, " %02X 00000000:00000000 00:00000000 00000000  1000        0 %d 1 0000 20 4\n",
               status, inode);
}

static void test_sockets(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(8192);
    struct torch_sockets found = {NULL};
    struct torch_peer store = {"10.0.0.2", 12345}, six = {"fd00::2", 12345};
    buf_puts(&text, "  sl  local_address rem_address   st tx_queue\n");
    line(&text, "10.0.0.1", 40000, "10.0.0.2", 12345, 1, 71);
    line(&text, "10.0.0.1", 40001, "10.0.0.2", 12346, 1, 72);
    line(&text, "10.0.0.1", 40002, "10.0.0.3", 12345, 1, 73);
    line(&text, "10.0.0.1", 40003, "10.0.0.2", 12345, 8, 74); /* CLOSE_WAIT */
    line(&text, "::ffff:10.0.0.1", 40004, "::ffff:10.0.0.2", 12345, 1, 75);
    line(&text, "fd00::1", 40005, "fd00::2", 12345, 1, 76);
    buf_puts(&text, "   7: cut");
    torch_sockets_add(&found, buf_text(&text), &store);
    assert_int_equal(found.count, 2);
    assert_string_equal(torch_sockets_find(&found, 71)->local.address, "10.0.0.1");
    assert_int_equal(torch_sockets_find(&found, 71)->local.port, 40000);
    assert_string_equal(torch_sockets_find(&found, 75)->local.address, "10.0.0.1");
    assert_null(torch_sockets_find(&found, 76));
    torch_sockets_add(&found, buf_text(&text), &six);
    assert_string_equal(torch_sockets_find(&found, 76)->local.address, "fd00::1");
    size_t count = found.count;
    torch_sockets_add(&found, "", &store);
    torch_sockets_add(&found, "no line", &store);
    assert_int_equal(found.count, count);
    free(found.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_sockets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
