/* ticks.c: see ticks.h. */
#include "plot/ticks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* v with `decimals` decimals and a unit, without printf's locale: digits of the rounded integer. */
static void label(char out[TICK_TEXT], double v, int decimals, const char *unit) {
    long long scale = 1;
    for (int i = 0; i < decimals; i++) scale *= 10;
    long long n = llround(fabs(v) * (double)scale);
    const char *sign = v < 0 && n != 0 ? "\xE2\x88\x92" : "";
    if (decimals)
        snprintf(out, TICK_TEXT, "%s%lld.%0*lld%s", sign, n / scale, decimals, n % scale, unit);
    else
        snprintf(out, TICK_TEXT, "%s%lld%s", sign, n, unit);
}

/* Mantissa and exponent, for numbers that are too small or large for plain digits. */
static void label_exponent(char out[TICK_TEXT], double v, int decimals) {
    int e = v != 0 ? (int)floor(log10(fabs(v)) + 1e-9) : 0;
    char mantissa[TICK_TEXT];
    label(mantissa, v / pow(10, e), decimals, "");
    if (v == 0)
        snprintf(out, TICK_TEXT, "0");
    else
        snprintf(out, TICK_TEXT, "%.12se%s%d", mantissa, e < 0 ? "\xE2\x88\x92" : "", abs(e));
}

/* Labels for multiples of `step` up to `largest` in size. */
static void label_all(ticks *t, double step, double largest) {
    int e = (int)floor(log10(step) + 1e-9);
    for (int i = 0; i < t->count; i++) {
        double v = t->at[i];
        if (largest >= 1e13 || largest < 1e-3) {
            int top = (int)floor(log10(largest) + 1e-9);
            label_exponent(t->text[i], v, top - e > 0 && top - e < 6 ? top - e : 0);
        } else if (largest >= 2e9) {
            label(t->text[i], v / 1e9, e < 9 && e > 3 ? 9 - e : 0, v != 0 ? "G" : "");
        } else if (largest >= 2e6) {
            label(t->text[i], v / 1e6, e < 6 && e > 0 ? 6 - e : 0, v != 0 ? "M" : "");
        } else if (largest >= 1e4 && e >= 2) {
            label(t->text[i], v / 1e3, e < 3 ? 3 - e : 0, v != 0 ? "k" : "");
        } else {
            label(t->text[i], v, e < 0 ? (e > -9 ? -e : 9) : 0, "");
        }
    }
}

ticks ticks_linear(double lo, double hi, int wanted) {
    ticks t = {.count = 0};
    if (!(hi > lo) || !isfinite(hi - lo) || wanted < 1) return t;
    double rough = (hi - lo) / wanted, decade = pow(10, floor(log10(rough))), best = 10 * decade;
    static const double factors[] = {1, 2, 5, 10};
    for (int i = 3; i >= 0; i--)
        if (factors[i] * decade >= rough * 0.75) best = factors[i] * decade;
    if (best == 0 || !isfinite(best)) return t;
    double slack = 1e-9 * best, first = ceil((lo - slack) / best);
    for (int i = 0; t.count < TICKS_MAX; i++) {
        double v = (first + i) * best;
        if (v > hi + slack) break;
        t.at[t.count++] = fabs(v) < slack ? 0 : v;
    }
    label_all(&t, best, fmax(fabs(lo), fabs(hi)));
    return t;
}

static void add_log(ticks *t, double v, double lo, double hi) {
    if (t->count == TICKS_MAX || v < lo * (1 - 1e-9) || v > hi * (1 + 1e-9)) return;
    char *text = t->text[t->count];
    if (v >= 999.5 && v < 1e9)
        label(text, v < 1e6 ? v / 1e3 : v / 1e6, 0, v < 1e6 ? "k" : "M");
    else if (v >= 1e-3 && v < 1e3)
        label(text, v, v < 0.0099 ? 3 : v < 0.099 ? 2 : v < 0.99 ? 1 : 0, "");
    else
        label_exponent(text, v, 0);
    t->at[t->count++] = v;
}

ticks ticks_log(double lo, double hi, int wanted) {
    ticks t = {.count = 0};
    if (!(lo > 0) || !(hi > lo) || !isfinite(hi) || wanted < 1) return t;
    int first = (int)floor(log10(lo)), last = (int)ceil(log10(hi));
    double decades = log10(hi) - log10(lo);
    if (decades < 1) return ticks_linear(lo, hi, wanted);
    int every = (int)ceil(decades / wanted);
    for (int e = first; e <= last; e++) {
        if (every > 1 && ((e % every) + every) % every != 0) continue;
        add_log(&t, pow(10, e), lo, hi);
        if (decades * 3 > wanted) continue;
        add_log(&t, 2 * pow(10, e), lo, hi);
        add_log(&t, 5 * pow(10, e), lo, hi);
    }
    return t;
}
