/* test_svg.c: charts and their SVG: escaping, ticks, every kind of series, layout, failures.
 * Pictures are checked by what must be in them; equal calls must give equal bytes. */
#include <dlfcn.h>
#include <unistd.h>

#include "check.h"
#include "plot/chart_internal.h"
#include "plot/svg.h"
#include "plot/ticks.h"
#include "util/date.h"

/* fontconfig, under cairo, keeps its caches until the process ends; the leak sanitizer asks here.
 */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libfontconfig\n";
}

static bool cairo_is_here(void) {
#ifdef MNP_PORTABLE
    return false; /* such a build loads nothing */
#else
    return dlopen("libcairo.so.2", RTLD_NOW | RTLD_NODELETE) != NULL;
#endif
}

static int occurrences(const char *text, const char *what) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what)) n++;
    return n;
}

/* Elements open and close in order, and quotes pair up: enough to catch a broken writer. */
static bool well_formed(const char *xml) {
    char stack[64][16];
    int depth = 0;
    for (const char *p = strchr(xml, '<'); p; p = strchr(p, '<')) {
        const char *end = strchr(p, '>');
        if (!end) return false;
        size_t name = strcspn(p + 1 + (p[1] == '/'), " />");
        if (name == 0 || name >= 16) return false;
        int quotes = 0;
        for (const char *q = p; q < end; q++) quotes += *q == '"';
        if (quotes % 2) return false;
        if (p[1] == '/') {
            if (depth == 0 || strncmp(stack[--depth], p + 2, name) != 0) return false;
        } else if (end[-1] != '/') {
            if (depth == 64) return false;
            memcpy(stack[depth], p + 1, name);
            stack[depth++][name] = '\0';
        }
        p = end;
    }
    return depth == 0;
}

static void text_is_escaped(void) {
    env e;
    env_init(&e);
    buf b;
    buf_init(&b, &e);
    svg_escape(&b, "a<b>&\"'\xC3\xA9\n");
    STREQ(buf_str(&b), "a&lt;b&gt;&amp;&quot;&#39;\xC3\xA9\n");
    buf_clear(&b);
    svg_escape(&b, "\x01\xFF\xC3 \xEF\xBF\xBF");
    STREQ(buf_str(&b), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD");
    buf_free(&b);
}

static void check_ticks(ticks t, const char *want) {
    char all[512] = "";
    for (int i = 0; i < t.count; i++) {
        if (i) strcat(all, " ");
        strcat(all, t.text[i]);
    }
    STREQ(all, want);
}

static void ticks_are_round(void) {
    check_ticks(ticks_linear(-2, 2, 4), "\xE2\x88\x92"
                                        "2 \xE2\x88\x92"
                                        "1 0 1 2");
    check_ticks(ticks_linear(0, 1, 5), "0.0 0.2 0.4 0.6 0.8 1.0");
    check_ticks(ticks_linear(0.013, 0.052, 4), "0.02 0.03 0.04 0.05");
    check_ticks(ticks_linear(0, 200000, 4), "0 50k 100k 150k 200k");
    check_ticks(ticks_linear(0, 3e6, 3), "0 1M 2M 3M");
    check_ticks(ticks_linear(0, 5e-4, 5), "0 1e\xE2\x88\x92"
                                          "4 2e\xE2\x88\x92"
                                          "4 3e\xE2\x88\x92"
                                          "4 "
                                          "4e\xE2\x88\x92"
                                          "4 5e\xE2\x88\x92"
                                          "4");
    check_ticks(ticks_linear(1000, 1004, 4), "1000 1001 1002 1003 1004");
    check_ticks(ticks_log(0.01, 100, 5), "0.01 0.1 1 10 100");
    check_ticks(ticks_log(1, 20, 8), "1 2 5 10 20");
    check_ticks(ticks_log(1e-8, 1e4, 4), "1e\xE2\x88\x92"
                                         "6 0.001 1 1k");
    CHECK(ticks_linear(1, 1, 5).count == 0 && ticks_linear(0, INFINITY, 5).count == 0);
    CHECK(ticks_log(0, 1, 5).count == 0 && ticks_log(-1, 1, 5).count == 0);
    /* whatever the limits: in order, inside, not too many */
    for (int k = 0; k < 400; k++) {
        double width = pow(10, -9 + 0.045 * k), lo = (k % 7 - 3) * 0.37 * width;
        ticks t = ticks_linear(lo, lo + width, 2 + k % 9);
        CHECK(t.count >= 1 && t.count < TICKS_MAX);
        for (int i = 0; i < t.count; i++) {
            CHECK(t.at[i] >= lo - 1e-6 * width && t.at[i] <= lo + width * (1 + 1e-6));
            if (i) CHECK(t.at[i] > t.at[i - 1] && strcmp(t.text[i], t.text[i - 1]) != 0);
        }
    }
}

static double day(int64_t year, int64_t month, int64_t of_month) {
    return (double)date_number(year, month, of_month);
}

static void dates_have_ticks(void) {
    check_ticks(ticks_dates(day(2019, 3, 1), day(2024, 3, 1), 6, false),
                "2020 2021 2022 2023 2024");
    check_ticks(ticks_dates(day(2023, 10, 20), day(2024, 4, 2), 6, false),
                "Nov 2023 Dec Jan 2024 Feb Mar Apr");
    check_ticks(ticks_dates(day(2024, 2, 27), day(2024, 3, 2), 5, false),
                "27 Feb 2024 28 Feb 29 Feb 1 Mar 2 Mar");
    check_ticks(ticks_dates(day(2024, 1, 1), day(2024, 1, 31), 5, false), /* Mondays */
                "1 Jan 2024 8 Jan 15 Jan 22 Jan 29 Jan");
    double noon = day(2024, 2, 29) * 86400 + 12 * 3600;
    check_ticks(ticks_dates(noon, noon + 86400, 4, true),
                "29 Feb 12:00 18:00 1 Mar 00:00 06:00 12:00");
    check_ticks(ticks_dates(noon, noon + 10, 2, true), "29 Feb 12:00:00 12:00:05 12:00:10");
    check_ticks(ticks_dates(noon + 0.1, noon + 1.1, 2, true), "29 Feb 12:00:00 +0.5 s +1.0 s");
    CHECK(ticks_dates(noon / 86400, (noon + 0.3) / 86400, 3, false).count >= 3);
    CHECK(ticks_dates(noon, noon, 4, true).count == 0);
    CHECK(ticks_dates(-1e12, 1e12, 4, false).count > 0); /* no calendar: numbers */
    for (int k = 0; k < 300; k++) { /* whatever the limits: in order, inside, not too many */
        double width = pow(10, -4 + 0.03 * k),
               lo = day(1900 + k % 200, 1 + k % 12, 1 + k % 28) + 0.3;
        ticks t = ticks_dates(lo, lo + width, 2 + k % 9, false);
        CHECK(t.count < TICKS_MAX);
        for (int i = 0; i < t.count; i++) {
            CHECK(t.at[i] >= lo - 1e-6 * width && t.at[i] <= lo + width * (1 + 1e-6));
            if (i) CHECK(t.at[i] > t.at[i - 1]);
        }
    }
}

static void colours_are_in_range(void) {
    plot_colour dark = palette_map(MNP_PLOT_MAP_VIRIDIS, -5),
                light = palette_map(MNP_PLOT_MAP_VIRIDIS, 7);
    CHECK(dark.r == 68 && dark.g == 1 && dark.b == 84);
    CHECK(light.r == 253 && light.g == 231 && light.b == 37);
    int before = -1; /* lightness rises */
    for (int i = 0; i <= 100; i++) {
        plot_colour c = palette_map(MNP_PLOT_MAP_VIRIDIS, i / 100.0);
        int luma = 2126 * c.r + 7152 * c.g + 722 * c.b;
        CHECK(luma > before);
        before = luma;
    }
    CHECK(palette_map(MNP_PLOT_MAP_GREY, 0.5).g == 128);
    plot_colour none = palette_map(MNP_PLOT_MAP_GREY, NAN);
    CHECK(none.r != none.b);
    CHECK(palette_hue(MNP_PLOT_GREEN, 0.5).a == 128);
}

enum { N = 50 };

/* Two by two panels with every kind of series. */
static mnp_plot *full_chart(env *e) {
    mnp_plot *c;
    if (chart_create(e, 2, 2, &c) != MNP_OK) return NULL;
    double x[N], y[N], lo[N], hi[N];
    for (int i = 0; i < N; i++) {
        x[i] = 1 + i;
        y[i] = i == 20 ? NAN : sin(0.3 * i) + 1.5;
        lo[i] = y[i] - 0.5;
        hi[i] = y[i] + 0.5;
    }
    mnp_plot_title(c, "a < b & c");
    mnp_panel *p = mnp_plot_panel(c, 0, 0);
    mnp_panel_title(p, "lines");
    mnp_panel_labels(p, "x", "y");
    mnp_panel_band(p, &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .label = "band"}, N, x, lo, hi);
    mnp_panel_line(p, &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .label = "mean"}, N, x, y);
    mnp_panel_points(p, &(mnp_plot_style){.hue = MNP_PLOT_BLACK, .marker = MNP_PLOT_RING}, 5, x, y,
                     lo);
    mnp_panel_rule(p, &(mnp_plot_style){.dash = MNP_PLOT_DASHED}, MNP_PLOT_X, 10);
    p = mnp_plot_panel(c, 0, 1);
    mnp_panel_log(p, MNP_PLOT_Y);
    mnp_panel_line(p, NULL, N, x, x);
    mnp_panel_points(p, &(mnp_plot_style){.marker = MNP_PLOT_CROSS}, 2, (double[]){3, 4},
                     (double[]){-1, 2}, NULL);
    p = mnp_plot_panel(c, 1, 0);
    mnp_panel_names(p, MNP_PLOT_Y, 3, (const char *const[]){"one", "two", "three"});
    mnp_panel_bars(p, &(mnp_plot_style){.sideways = true}, 3, (double[]){0, 1, 2},
                   (double[]){1, -2, 3}, (double[]){0.1, 0.2, 0.3});
    p = mnp_plot_panel(c, 1, 1);
    mnp_panel_bare(p);
    double cells[6] = {0, 0, 1, 2, NAN, 3};
    mnp_panel_heatmap(p, &(mnp_plot_heatmap){.rows = 2, .cols = 3, .values = cells, .bar = true});
    return c;
}

static void every_kind_is_drawn(void) {
    env e;
    env_init(&e);
    mnp_plot *c = full_chart(&e);
    CHECK(c != NULL);
    if (!c) return;
    buf one, two;
    buf_init(&one, &e);
    buf_init(&two, &e);
    CHECK(chart_render_svg(c, "", &one) == MNP_OK);
    CHECK(chart_render_svg(c, "", &two) == MNP_OK);
    const char *svg = buf_str(&one);
    STREQ(svg, buf_str(&two));
    CHECK(well_formed(svg));
    CHECK(!strstr(svg, "nan") && !strstr(svg, "inf"));
    CHECK(strstr(svg, ">a &lt; b &amp; c</text>") != NULL);
    CHECK(occurrences(svg, "<clipPath") == 4);
    CHECK(occurrences(svg, "stroke-dasharray") == 1);
    CHECK(occurrences(svg, "fill-opacity=\"0.2\"") == 3); /* a gap splits the band; legend */
    CHECK(strstr(svg, ">three</text>") && strstr(svg, ">mean</text>"));
    CHECK(strstr(svg, "M0 0h2v1h-2z") != NULL); /* equal cells in a row are one run */
    CHECK(occurrences(svg, "<circle") == 5);
    buf_free(&one);
    buf_free(&two);
    chart_destroy(c);
}

/* A forecast: its legend says what everything is, once, and a swatch has the colour of its band:
 * that of all bands under it. A point on the edge is drawn whole, one outside is not. */
static void forecasts_explain_themselves(void) {
    env e;
    env_init(&e);
    mnp_plot *c;
    const double x[] = {0, 1, 2}, share[] = {0.95, 0.5}, lo[] = {0, 0, 0, 1, 1, 1};
    const double hi[] = {9, 9, 9, 5, 5, 5}, mean[] = {3, 3, 3}, seen[] = {0, 5}, y[] = {3, 3};
    const mnp_set other = {3, x, mean};
    mnp_plot_forecast f = {.n = 3,
                           .x = x,
                           .bands = 2,
                           .share = share,
                           .lo = lo,
                           .hi = hi,
                           .draws = 1,
                           .draw = mean,
                           .mean = mean,
                           .given = {2, seen, y},
                           .held = {1, x + 1, y},
                           .curves = 1,
                           .curve = &other,
                           .data_lo = 0,
                           .data_hi = 1};
    CHECK(chart_create(&e, 1, 2, &c) == MNP_OK);
    mnp_plot_legend_below(c, true);
    for (int k = 0; k < 2; k++) {
        mnp_panel_limits(mnp_plot_panel(c, 0, k), MNP_PLOT_X, 0, 2);
        mnp_panel_forecast(mnp_plot_panel(c, 0, k), &f);
    }
    buf out;
    buf_init(&out, &e);
    CHECK(chart_render_svg(c, "first", &out) == MNP_OK);
    const char *svg = buf_str(&out);
    CHECK(well_formed(svg));
    static const char *const labels[] = {">95 %<",
                                         ">50 % of measurements, noise included<",
                                         ">draws, without noise<",
                                         ">mean<",
                                         ">observed<",
                                         ">held out<",
                                         ">training curves<",
                                         ">outside the training data<"};
    for (size_t k = 0; k < sizeof labels / sizeof *labels; k++)
        CHECK(occurrences(svg, labels[k]) == 1);
    CHECK(occurrences(svg, "<circle") == 2 * 2 + 2); /* the second point seen lies outside */
    CHECK(occurrences(svg, "id=\"firstclip") == occurrences(svg, "url(#firstclip"));
    /* the wide band: two panels, its swatch, and under the swatch of the narrow one */
    CHECK(occurrences(svg, "fill=\"#0072b2\" fill-opacity=\"0.13\"") == 4);
    CHECK(occurrences(svg, "fill=\"#0072b2\" fill-opacity=\"0.21\"") == 3);
    buf_free(&out);
    chart_destroy(c);
}

/* The last row may be short: the panels above its gap have the tick labels. And all panels have one
 * range where they shall. */
static void panels_share_their_axes(void) {
    env e;
    env_init(&e);
    mnp_plot *c;
    CHECK(chart_create(&e, 2, 2, &c) == MNP_OK);
    mnp_plot_share(c, true, true);
    mnp_plot_same(c, false, true);
    for (int k = 0; k < 3; k++)
        mnp_panel_line(mnp_plot_panel(c, k / 2, k % 2), NULL, 2, (double[]){0, 1},
                       (double[]){k, 10 * k});
    layout_chart(c);
    CHECK(!c->panels[0].axes[MNP_PLOT_X].labelled && c->panels[1].axes[MNP_PLOT_X].labelled);
    CHECK(c->panels[2].axes[MNP_PLOT_X].labelled && c->panels[2].axes[MNP_PLOT_Y].labelled);
    for (int k = 0; k < 3; k++) {
        CHECK(c->panels[k].axes[MNP_PLOT_Y].lo == c->panels[0].axes[MNP_PLOT_Y].lo);
        CHECK(c->panels[k].axes[MNP_PLOT_Y].hi > 20);
    }
    chart_destroy(c);
}

static void odd_data_is_survived(void) {
    env e;
    env_init(&e);
    mnp_plot *c;
    CHECK(chart_create(&e, 1, 3, &c) == MNP_OK);
    mnp_plot_share(c, true, true);
    mnp_panel *p = mnp_plot_panel(c, 0, 0);
    mnp_panel_line(p, &(mnp_plot_style){.label = "empty"}, 0, NULL, NULL);
    mnp_panel_line(p, NULL, 1, (double[]){1}, (double[]){1e300});
    mnp_panel_line(p, NULL, 2, (double[]){NAN, INFINITY}, (double[]){1, 2});
    p = mnp_plot_panel(c, 0, 1);
    mnp_panel_log(p, MNP_PLOT_X);
    mnp_panel_log(p, MNP_PLOT_Y);
    mnp_panel_line(p, NULL, 2, (double[]){-1, 0}, (double[]){-1, 0});
    mnp_panel_limits(p, MNP_PLOT_Y, -5, 5);
    mnp_panel_limits(p, MNP_PLOT_X, NAN, 5);
    p = mnp_plot_panel(c, 7, -2); /* clamped into the grid */
    CHECK(p == mnp_plot_panel(c, 0, 0));
    double nothing[4] = {NAN, NAN, NAN, NAN};
    mnp_panel_heatmap(mnp_plot_panel(c, 0, 2),
                      &(mnp_plot_heatmap){.rows = 2, .cols = 2, .values = nothing});
    buf out;
    buf_init(&out, &e);
    CHECK(chart_render_svg(c, "", &out) == MNP_OK);
    CHECK(well_formed(buf_str(&out)));
    CHECK(!strstr(buf_str(&out), "nan") && !strstr(buf_str(&out), "inf"));
    buf_free(&out);
    chart_destroy(c);
    chart_destroy(NULL);
    CHECK(chart_create(&e, 0, 1, &c) == MNP_EINVAL && c == NULL);
    CHECK(chart_create(&e, 1, MNP_PLOT_SIDE_MAX + 1, &c) == MNP_EINVAL);
}

typedef struct counting {
    int until_failure, live;
} counting;

static void *counting_alloc(void *user, size_t bytes, size_t align) {
    counting *c = user;
    if (c->until_failure-- == 0) return NULL;
    c->live++;
    return aligned_alloc(align, (bytes + align) / align * align);
}

static void counting_free(void *user, void *ptr) {
    ((counting *)user)->live--;
    free(ptr);
}

/* Fail the first, second, third ... allocation until one run needs no more. */
static void memory_failures_are_clean(void) {
    bool done = false;
    for (int n = 0; n < 500 && !done; n++) {
        counting count = {.until_failure = n};
        env e;
        env_init(&e);
        e.allocator = (mnp_allocator){counting_alloc, counting_free, &count};
        buf out;
        buf_init(&out, &e);
        mnp_plot *c = full_chart(&e);
        mnp_status s = c ? chart_render_svg(c, "", &out) : MNP_ENOMEM;
        CHECK(s == MNP_OK || s == MNP_ENOMEM);
        done = count.until_failure >= 0;
        CHECK(done == (s == MNP_OK));
        chart_destroy(c);
        buf_free(&out);
        CHECK(count.live == 0);
    }
    CHECK(done);
}

static size_t file_starts_with(env *e, const char *path, const char *magic, size_t n) {
    char *data = NULL;
    size_t bytes = 0;
    if (fsio_read(e, path, 1 << 24, &data, &bytes) != MNP_OK) return 0;
    if (bytes < n || memcmp(data, magic, n) != 0) bytes = 0;
    env_free(e, data);
    return bytes;
}

static void files_by_extension(void) {
    env e;
    env_init(&e);
    char folder[] = "/tmp/mnp-test-XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    mnp_plot *c = full_chart(&e);
    static const struct {
        const char *extension, *magic;
        size_t n;
    } kinds[] = {{"svg", "<svg ", 5}, {"png", "\x89PNG", 4}, {"pdf", "%PDF", 4}};
    for (int i = 0; i < 3; i++) {
        CASE(kinds[i].extension);
        snprintf(path, sizeof path, "%s/a.%s", folder, kinds[i].extension);
        mnp_status s = mnp_plot_save(c, path);
        if (i > 0 && !cairo_is_here()) {
            CHECK(s == MNP_EUNSUPPORTED && strstr(e.error, "libcairo.so.2: apt-get install"));
            continue;
        }
        CHECK(s == MNP_OK);
        CHECK(file_starts_with(&e, path, kinds[i].magic, kinds[i].n) > 1000);
        CHECK(unlink(path) == 0);
    }
    CASE(NULL);
    snprintf(path, sizeof path, "%s/a.jpg", folder);
    CHECK(mnp_plot_save(c, path) == MNP_EINVAL && strstr(e.error, ".svg, .png or .pdf"));
    snprintf(path, sizeof path, "%s/none/a.svg", folder);
    CHECK(mnp_plot_save(c, path) == MNP_EIO);
    CHECK(rmdir(folder) == 0);
    chart_destroy(c);
}

int main(void) {
    RUN(text_is_escaped);
    RUN(ticks_are_round);
    RUN(dates_have_ticks);
    RUN(colours_are_in_range);
    RUN(every_kind_is_drawn);
    RUN(forecasts_explain_themselves);
    RUN(panels_share_their_axes);
    RUN(odd_data_is_survived);
    RUN(memory_failures_are_clean);
    RUN(files_by_extension);
    return check_done();
}
