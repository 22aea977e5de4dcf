/* forecast.c: a curve as a model sees it, in one panel. See mnp_plot.h for the contract. */
#include <math.h>
#include <stdio.h>

#include "plot/chart_internal.h"

enum { LABEL = 64 };

/* "95 %", and what the bands are at the last of them. */
static void band_label(char out[LABEL], double share, bool last) {
    char number[FSIO_NUMBER_TEXT];
    fsio_format_double(round(share * 1e4) / 100, number);
    snprintf(out, LABEL, last ? "%s %% of measurements, noise included" : "%s %%", number);
}

static void draw_shades(mnp_panel *p, const mnp_plot_forecast *f) {
    mnp_plot_style s = {.hue = MNP_PLOT_GREY, .alpha = 0.14};
    double lo = f->n ? f->x[0] : 0, hi = f->n ? f->x[f->n - 1] : 0;
    if (!(f->data_lo < f->data_hi)) return;
    if (lo < f->data_lo || hi > f->data_hi) s.label = "outside the training data";
    mnp_panel_shade(p, &s, MNP_PLOT_X, -INFINITY, f->data_lo);
    s.label = NULL;
    mnp_panel_shade(p, &s, MNP_PLOT_X, f->data_hi, INFINITY);
}

static void draw_others(mnp_panel *p, const mnp_plot_forecast *f) {
    mnp_plot_style s = {
        .hue = MNP_PLOT_GREY, .alpha = 0.38, .width = 0.8, .label = "training curves"};
    for (int64_t i = 0; i < f->curves; i++) {
        mnp_panel_line(p, &s, (size_t)f->curve[i].n, f->curve[i].x, f->curve[i].y);
        s.label = NULL;
    }
}

static void draw_bands(mnp_panel *p, const mnp_plot_forecast *f) {
    for (int64_t b = 0; b < f->bands; b++) {
        char label[LABEL];
        band_label(label, f->share[b], b + 1 == f->bands);
        double depth = f->bands > 1 ? (double)b / (double)(f->bands - 1) : 0.5;
        mnp_plot_style s = {.hue = MNP_PLOT_BLUE, .alpha = 0.13 + 0.08 * depth, .label = label};
        mnp_panel_band(p, &s, (size_t)f->n, f->x, f->lo + b * f->n, f->hi + b * f->n);
    }
}

static void draw_draws(mnp_panel *p, const mnp_plot_forecast *f) {
    mnp_plot_style s = {
        .hue = MNP_PLOT_BLUE, .alpha = 0.45, .width = 0.8, .label = "draws, without noise"};
    for (int64_t i = 0; i < f->draws; i++) {
        mnp_panel_line(p, &s, (size_t)f->n, f->x, f->draw + i * f->n);
        s.label = NULL;
    }
}

static void draw_sets(mnp_panel *p, const mnp_plot_forecast *f) {
    mnp_plot_style held = {.hue = MNP_PLOT_BLACK,
                           .marker = MNP_PLOT_RING,
                           .size = 6.5,
                           .width = 1.4,
                           .label = "held out"};
    mnp_plot_style given = {.hue = MNP_PLOT_BLACK, .size = 7.5, .label = "observed"};
    if (f->held.n) mnp_panel_points(p, &held, (size_t)f->held.n, f->held.x, f->held.y, NULL);
    if (f->given.n) mnp_panel_points(p, &given, (size_t)f->given.n, f->given.x, f->given.y, NULL);
}

/* Counts are not negative, and where there is a count its arrays are there. */
static bool complete(const mnp_plot_forecast *f) {
    bool counts = f->n >= 0 && f->bands >= 0 && f->draws >= 0 && f->curves >= 0 &&
                  f->given.n >= 0 && f->held.n >= 0;
    if (!counts) return false;
    if (f->n && !f->x) return false;
    if (f->bands && (!f->share || !f->lo || !f->hi)) return false;
    if ((f->draws && !f->draw) || (f->curves && !f->curve)) return false;
    for (int64_t i = 0; i < f->curves; i++)
        if (f->curve[i].n < 0) return false;
    return true;
}

void mnp_panel_forecast(mnp_panel *p, const mnp_plot_forecast *f) {
    if (!p) return;
    if (!f || !complete(f)) {
        chart_fail(p->owner, MNP_EINVAL, "a forecast of a figure lacks an array");
        return;
    }
    draw_shades(p, f);
    draw_others(p, f);
    draw_bands(p, f);
    draw_draws(p, f);
    if (f->mean)
        mnp_panel_line(p,
                       &(mnp_plot_style){.hue = MNP_PLOT_VERMILION, .width = 2.2, .label = "mean"},
                       (size_t)f->n, f->x, f->mean);
    draw_sets(p, f);
}
