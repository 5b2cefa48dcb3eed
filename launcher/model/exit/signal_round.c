/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/signal_round.h"

bool signal_rounds_is_news(struct signal_rounds *rounds, int signal, bool from_node, int64_t now_ms)
{
    if (signal <= 0 || signal > SIGNAL_NUMBER_MAX)
        return false;
    bool under_way =
        rounds->of[signal].begun_ms != 0 && now_ms - rounds->of[signal].begun_ms < SIGNAL_ROUND_MS;
    if (under_way && (from_node || !rounds->of[signal].ours)) {
        rounds->of[signal].ours = rounds->of[signal].ours || !from_node;
        return false;
    }
    rounds->of[signal].begun_ms = now_ms;
    rounds->of[signal].ours = !from_node;
    return true;
}
