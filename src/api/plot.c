/* plot.c: figure handles. The rest of mnp_plot.h stands in src/plot/axes.c. */
#include "api/api_internal.h"
#include "plot/chart.h"

mnp_status mnp_plot_create(mnp_ctx *ctx, int rows, int cols, mnp_plot **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, out, "out"));
    MNP_TRY(chart_create(&ctx->env, rows, cols, out));
    *chart_ctx(*out) = ctx_keep(ctx);
    return MNP_OK;
}

void mnp_plot_destroy(mnp_plot *f) {
    if (!f) return;
    mnp_ctx *ctx = *chart_ctx(f);
    chart_destroy(f);
    ctx_drop(ctx);
}
