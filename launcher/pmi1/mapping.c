/* SPDX-License-Identifier: Apache-2.0 */
#include "pmi1/mapping.h"

#include "base/buf.h"
#include "base/mem.h"

struct block {
    int first, nodes, ranks; /* ranks in a row on each of so many nodes */
};

static int run_length(const int *node_of, int size, int at)
{
    int length = 1;
    while (at + length < size && node_of[at + length] == node_of[at])
        length++;
    return length;
}

/* The block that begins with rank `at`. */
static struct block block_at(const int *node_of, int size, int at)
{
    struct block block = {node_of[at], 1, run_length(node_of, size, at)};
    for (at += block.ranks; at < size && node_of[at] == block.first + block.nodes;
         at += block.ranks) {
        if (run_length(node_of, size, at) != block.ranks)
            break;
        block.nodes++;
    }
    return block;
}

static char *write_blocks(const int *node_of, int size, int limit)
{
    struct buf text AUTO_BUF = BUF_INIT((size_t)limit);
    int full = buf_puts(&text, "(vector");
    for (int at = 0; at < size && full == 0;) {
        struct block block = block_at(node_of, size, at);
        full = buf_printf(&text, ",(%d,%d,%d)", block.first, block.nodes, block.ranks);
        at += block.nodes * block.ranks;
    }
    if (full == 0)
        full = buf_putc(&text, ')');
    return full == 0 ? buf_take(&text) : NULL;
}

/* The length of the shortest beginning that, said again and again, gives all of it (the last time
 * perhaps not to its end): by the longest part that is beginning and end at once (Knuth, Morris,
 * Pratt). */
static int period(const int *node_of, int size)
{
    int *overlap AUTO_FREE = mem_array((size_t)size, sizeof(*overlap));
    for (int i = 1, length = 0; i < size; i++) {
        while (length > 0 && node_of[i] != node_of[length])
            length = overlap[length - 1];
        length += node_of[i] == node_of[length];
        overlap[i] = length;
    }
    return size - overlap[size - 1];
}

char *mapping_text(const int *node_of, int size, int limit)
{
    char *text = write_blocks(node_of, size, limit);
    if (text != NULL || size == 0)
        return text;
    return write_blocks(node_of, period(node_of, size), limit);
}
