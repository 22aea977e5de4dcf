/* turns.c: see turns.h. */
#include "cli/turns.h"

#include "util/limits.h"

bool turns_read_order(cli *c, mnp_turn_opts *o) {
    *o = (mnp_turn_opts){.size = sizeof *o, .seed = c->seed};
    o->order = cli_choice(c, "order", "random|x", 0) ? MNP_ORDER_X : MNP_ORDER_RANDOM;
    return cli_has(c, "order");
}

bool turns_read(cli *c, mnp_turn_opts *o) {
    bool wanted = turns_read_order(c, o);
    o->orders = cli_int(c, "orders", 1, 1, ORDERS_MAX);
    if (cli_has(c, "orders") && !wanted)
        c->status = cli_fail(c, EXIT_USAGE, "--orders is for --order random");
    if (wanted && o->orders > 1 && o->order == MNP_ORDER_X)
        c->status = cli_fail(c, EXIT_USAGE, "by x there is one order: --orders is for random ones");
    return wanted;
}

const char *turns_name(mnp_order order) {
    return order == MNP_ORDER_X ? "in turn, by rising x" : "in turn, random order";
}
