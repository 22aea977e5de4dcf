/* test_report.c: the report's page: what stands in it, that texts of a table cannot become markup,
 * and that it needs nothing else. */
#include <math.h>

#include "check.h"
#include "fit/report.h"
#include "plot/chart.h"

#define HOSTILE "<script>alert('x')</script>&\"b\""

static int occurrences(const char *text, const char *what) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what)) n++;
    return n;
}

/* Elements open and close in order: the page is XML as well. Style sheets are left out. */
static bool well_formed(const char *page) {
    char stack[64][16];
    int depth = 0;
    const char *p = strstr(page, "<html");
    for (; p; p = strchr(p, '<')) {
        const char *end = strchr(p, '>');
        if (!end) return false;
        size_t name = strcspn(p + 1 + (p[1] == '/'), " />\n");
        if (name == 0 || name >= 16) return false;
        if (p[1] == '/') {
            if (depth == 0 || strncmp(stack[--depth], p + 2, name) != 0 || stack[depth][name])
                return false;
        } else if (end[-1] != '/') {
            if (depth == 64) return false;
            memcpy(stack[depth], p + 1, name);
            stack[depth++][name] = '\0';
        }
        p = end;
    }
    return depth == 0;
}

static const mnp_fit_score rows[] = {
    {.model = "offset",
     .title = "mean + offset",
     .task = MNP_FIT_FIRST,
     .curves = 12,
     .targets = 96,
     .logp = -1.5,
     .logp_se = 0.25,
     .crps = 0.7312,
     .crps_se = 0.0456,
     .coverage50 = 0.25,
     .coverage80 = 0.5,
     .coverage95 = 0.75,
     .roughness = 1.5,
     .pit = {0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0.5}},
    {.model = "lmm",
     .title = "mixed model",
     .task = MNP_FIT_FIRST,
     .curves = 12,
     .targets = 96,
     .logp = -0.25,
     .logp_se = NAN,
     .crps = 0.0042,
     .crps_se = 0.00031,
     .coverage50 = 0.49,
     .coverage80 = 0.81,
     .coverage95 = 0.96,
     .roughness = NAN,
     .pit = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}},
    {.model = "lmm",
     .title = "mixed model",
     .task = MNP_FIT_RANDOM,
     .curves = 12,
     .targets = 95,
     .crps = 0.005,
     .coverage95 = 0.92},
};

static report small_report(void) {
    static const report_item settings[] = {{"seed", "7"}, {"version of mnp", "1.2.3"}};
    static const report_item files[] = {{"a b.safetensors", "mixed model"}};
    return (report){.table = "my " HOSTILE ".csv",
                    .understood = "columns: group \"" HOSTILE "\"\nranges: a to b\n",
                    .warnings = "the column " HOSTILE " is odd\nfew curves\n",
                    .why = "it has the lowest CRPS",
                    .best = "lmm",
                    .y_name = HOSTILE,
                    .curves = 12,
                    .folds = 4,
                    .row = rows,
                    .rows = 3,
                    .model = "it's <b>.safetensors",
                    .command = "mnp fit 'a&b.csv' --seed 7",
                    .file = files,
                    .setting = settings,
                    .files = 1,
                    .settings = 2};
}

static void page_has_all_and_escapes_it(void) {
    env e;
    env_init(&e);
    buf out;
    buf_init(&out, &e);
    report r = small_report();
    for (int t = 0; t < MNP_FIT_TASKS; t++) {
        CHECK(chart_create(&e, 1, 1, &r.held[t]) == MNP_OK);
        mnp_panel_title(mnp_plot_panel(r.held[t], 0, 0), HOSTILE);
        mnp_panel_line(mnp_plot_panel(r.held[t], 0, 0), NULL, 2, (double[]){0, 1},
                       (double[]){0, 1});
        r.shown[t] = 1;
    }
    CHECK(report_html(&e, &r, &out) == MNP_OK);
    const char *page = buf_str(&out);
    CHECK(well_formed(page));
    CHECK(!strstr(page, "<script") && !strstr(page, "<b>.safetensors"));
    /* title, heading, what to do next; the columns; the warning; the unit; two pictures */
    CHECK(occurrences(page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;b&quot;") ==
          8);
    static const char *const wanted[] = {
        "0.731 \xC2\xB1 0.046", /* with the digits of its error */
        "0.00420 \xC2\xB1 0.00031",
        "\xE2\x88\x92"
        "0.250</td>", /* no error is known */
        "\xE2\x88\x92"
        "1.50 \xC2\xB1 0.25",
        "<td>25 %</td><td>50 %</td><td>75 %</td><td>1.50</td>",
        "<td>49 %</td><td>81 %</td><td>96 %</td><td>\xE2\x80\x93</td>",
        "<tr class=\"best\"><td>mixed model (best)</td>",
        "held <b>96 %</b> of the other 96 measurements (12 curves)",
        "held <b>92 %</b> of the other 95 measurements",
        "<li>few curves</li>",
        "<li>ranges: a to b</li>",
        "divided into 4 parts",
        "mnp plot &#39;it&#39;\\&#39;&#39;s &lt;b&gt;.safetensors&#39; --context new.csv",
        "<pre>mnp fit &#39;a&amp;b.csv&#39; --seed 7</pre>",
        "<td>version of mnp</td><td>1.2.3</td>",
        "<td>a b.safetensors</td><td>mixed model</td>"};
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        CASE(wanted[k]);
        CHECK(strstr(page, wanted[k]) != NULL);
    }
    CASE(NULL);
    CHECK(occurrences(page, "class=\"best\"") == 2); /* one for each task */
    for (int t = 0; t < MNP_FIT_TASKS; t++) chart_destroy(r.held[t]);
    buf_free(&out);
}

/* No address but the name of SVG; no style sheet, font or picture from elsewhere. And every clip
 * path of the page has a name of its own. */
static void page_needs_nothing_else(void) {
    env e;
    env_init(&e);
    buf out;
    buf_init(&out, &e);
    report r = small_report();
    r.warnings = "";
    CHECK(report_html(&e, &r, &out) == MNP_OK);
    const char *page = buf_str(&out);
    CHECK(occurrences(page, "http") == occurrences(page, "http://www.w3.org/2000/svg"));
    CHECK(!strstr(page, "src=") && !strstr(page, "href=") && !strstr(page, "@import"));
    CHECK(strstr(page, "There are no warnings."));
    for (const char *p = page; (p = strstr(p, "<clipPath id=")); p++) {
        char id[64] = "";
        snprintf(id, sizeof id, "%.*s", (int)(strchr(p, '>') - p), p);
        CHECK(occurrences(page, id) == 1);
    }
    CHECK(occurrences(page, "url(#calibrationclip") > 1);
    buf_free(&out);
}

/* Small numbers keep their digits, and several outputs have no unit of their own. */
static void numbers_and_units(void) {
    env e;
    env_init(&e);
    buf out;
    buf_init(&out, &e);
    report r = small_report();
    mnp_fit_score small[] = {rows[0], rows[1]};
    small[0].crps = 1.2346e-9, small[0].crps_se = 3.1e-11;
    small[0].logp = -0.5, small[0].logp_se = 1.5e-8;
    small[1].crps = 0, small[1].crps_se = 2e-9;
    r.row = small;
    r.rows = 2;
    r.y_name = "height";
    CHECK(report_html(&e, &r, &out) == MNP_OK);
    CHECK(strstr(buf_str(&out), "<td>1.235e-09 \xC2\xB1 3.1e-11</td>"));
    CHECK(strstr(buf_str(&out), "<td>\xE2\x88\x92"
                                "0.5 \xC2\xB1 1.5e-08</td>"));
    CHECK(strstr(buf_str(&out), "<td>0 \xC2\xB1 2e-09</td>"));
    CHECK(strstr(buf_str(&out), "in units of height;"));
    buf_clear(&out);
    r.several = true;
    CHECK(report_html(&e, &r, &out) == MNP_OK);
    CHECK(strstr(buf_str(&out), "in units of each output\xE2\x80\x99s spread;"));
    CHECK(!strstr(buf_str(&out), "in units of height"));
    buf_free(&out);
}

static void words_of_a_shell(void) {
    static const char *const cases[][2] = {
        {"plants.csv", "plants.csv"}, {"my plants.csv", "'my plants.csv'"},
        {"it's", "'it'\\''s'"},       {"-rf", "./-rf"},
        {"a$(b)", "'a$(b)'"},         {"", "''"},
        {"-a b", "./'-a b'"}};
    env e;
    env_init(&e);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        buf b;
        buf_init(&b, &e);
        buf_path(&b, cases[k][0]);
        STREQ(buf_str(&b), cases[k][1]);
        buf_clear(&b);
        buf_word(&b, cases[k][0]); /* an option's value may begin with a dash */
        STREQ(buf_str(&b), cases[k][1] + (*cases[k][0] == '-' ? 2 : 0));
        buf_free(&b);
    }
}

int main(void) {
    RUN(page_has_all_and_escapes_it);
    RUN(page_needs_nothing_else);
    RUN(numbers_and_units);
    RUN(words_of_a_shell);
    return check_done();
}
