/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8 [--bad]: writes "größe € 😀 漢字" byte by byte, with a long pause in the middle of each
 * character of more than one byte. With --bad, it writes bytes that are not UTF-8 at all.
 */
#include "worker.h"

int main(int argc, char **argv)
{
    if (flag(argc, argv, "--bad")) {
        write_all(1, "bad \xff\xfe\xc3( end\n", 13);
        write_all(1, "cut \xe2\x82", 6);
        return 0;
    }
    const char *text = "gr\xc3\xb6\xc3\x9f"
                       "e \xe2\x82\xac \xf0\x9f\x98\x80 \xe6\xbc\xa2\xe5\xad\x97\n";
    for (const char *at = text; *at != '\0'; at++) {
        write_all(1, at, 1);
        const unsigned char next = (unsigned char)at[1];
        if ((next & 0xc0) == 0x80)
            pause_ms(300);
    }
    return 0;
}
