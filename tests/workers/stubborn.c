/* SPDX-License-Identifier: Apache-2.0 */
/* stubborn: ignores every signal that can be ignored, says "ready" and stays. */
#include "worker.h"

int main(void)
{
    for (int number = 1; number < SIGRTMIN; number++)
        signal(number, SIG_IGN);
    dprintf(1, "ready\n");
    wait_for_ever();
    return 0;
}
