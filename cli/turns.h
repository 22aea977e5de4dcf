/* turns.h: the flags of targets in turn, each given those before it. */
#ifndef MNP_CLI_TURNS_H
#define MNP_CLI_TURNS_H

#include "cli/cli.h"

#define TURN_ORDER_FLAG(what)                                                                      \
    {                                                                                              \
        "order", "O",                                                                              \
            "random|x: " what " in turn, each given those before it; for models without latents"   \
    }
#define TURN_ORDERS_FLAG                                                                           \
    { "orders", "K", "random orders that are averaged (default 1); their spread is printed" }

/* Whether --order is given, and what it says; and --orders, which is 1 or more. A misuse is told.
 */
bool turns_read_order(cli *c, mnp_turn_opts *o);
bool turns_read(cli *c, mnp_turn_opts *o);
const char *turns_name(mnp_order order); /* "in turn, random order" or "in turn, by rising x" */

#endif
