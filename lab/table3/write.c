/* write.c: table 3 as Markdown and JSON. Nothing in the Markdown depends on time or place: a
 * resumed study writes the same text as an undisturbed one. */
#include <math.h>

#include "lab/table3/table3.h"

/* The paper's table: mean and, it seems, standard deviation over test images. */
static const struct {
    const char *model;
    double score[TABLE3_CONTEXTS], spread[TABLE3_CONTEXTS];
} paper[] = {
    {"MNPs",
     {0.67, 0.80, 0.98, 1.12, 0.44, 0.22, 0.65},
     {0.31, 0.23, 0.18, 0.15, 0.59, 0.61, 0.39}},
    {"NPs",
     {-0.35, -0.31, -0.28, -0.25, -39.63, -22.03, -1.18},
     {0.30, 0.29, 0.27, 0.27, 304.08, 107.25, 4.20}},
};
enum { PAPER_ROWS = 2 };

static const char *const full_names[TABLE3_MODELS] = {"MNP", "NP", "ordinary kriging",
                                                      "latent GP (kriging of normal scores)"};

/* ---- Markdown -------------------------------------------------------------------------------- */

static void put_head(buf *b) {
    buf_text(b, "| model |");
    for (int k = 0; k < TABLE3_CONTEXTS; k++)
        buf_printf(b, k < 4 ? " N = %s |" : " %s |", table3_contexts[k].name);
    buf_text(b, "\n|---|---|---|---|---|---|---|---|\n");
}

static void put_table(buf *b, const table3 *t, int size, int scoring, int law) {
    put_head(b);
    for (int m = 0; m < TABLE3_MODELS; m++) {
        buf_printf(b, "| %s |", full_names[m]);
        for (int k = 0; k < TABLE3_CONTEXTS; k++) {
            const table3_cell *c = table3_at(t, size, m, k);
            buf_text(b, " ");
            md_pm(b, c->loglik[scoring][law], c->se[scoring][law], 3);
            buf_text(b, " |");
        }
        buf_text(b, "\n");
    }
    for (int r = 0; r < PAPER_ROWS && scoring == TABLE3_NOISY && law == TABLE3_JOINT; r++) {
        buf_printf(b, "| *%s, paper (quoted)* |", paper[r].model);
        for (int k = 0; k < TABLE3_CONTEXTS; k++) {
            buf_text(b, " *");
            md_pm(b, paper[r].score[k], paper[r].spread[k], 2);
            buf_text(b, "* |");
        }
        buf_text(b, "\n");
    }
    buf_text(b, "\n");
}

static void put_fit(buf *b, const krige *k, const char *name) {
    buf_printf(b, "| %s | %s | %.2f, %.2f | %.3f | %.4f, %.4f |\n", name,
               k->shape == KRIGE_EXPONENTIAL ? "exp(-h)" : "(1 + h) exp(-h)", k->range[0],
               k->range[1], k->sill, k->nugget_well, k->nugget_pixel);
}

static void put_size(buf *b, const table3 *t, int size) {
    static const char *const scorings[] = {
        "targets with noise 0.05 (as the authors score; no score above 1.577 is possible)",
        "noise-free targets, the same densities"};
    static const char *const laws[] = {"each pixel by itself", "all pixels together"};
    const table3_size *s = &t->size[size];
    buf_printf(b, "## %lld × %lld pixels\n\n", (long long)s->side, (long long)s->side);
    for (int n = 0; n < TABLE3_NETS; n++) {
        const char *data = mnp_model_note(s->net[n], "data");
        buf_printf(b, "%s: %lld parameters, trained for %s steps on %s. ", full_names[n],
                   (long long)mnp_model_parameters(s->net[n]),
                   mnp_model_note(s->net[n], "steps") ? mnp_model_note(s->net[n], "steps") : "?",
                   data ? data : "?");
    }
    buf_text(b, "\n\n");
    for (int scoring = 0; scoring < TABLE3_SCORINGS; scoring++)
        for (int law = TABLE3_LAWS - 1; law >= 0; law--) {
            buf_printf(b, "### %s; %s\n\n", scorings[scoring], laws[law]);
            put_table(b, t, size, scoring, law);
        }
    buf_text(b, "| kriging | covariance / sill | ranges, pixels (rows, columns) | sill | nuggets "
                "(wells, pixels) |\n|---|---|---|---|---|\n");
    put_fit(b, &s->fit[0], full_names[TABLE3_KRIGING]);
    put_fit(b, &s->fit[1], full_names[TABLE3_LATENT]);
    buf_text(b, "\n");
}

static void put_notes(buf *b, const table3 *t) {
    buf_printf(
        b,
        "Nats per pixel, higher is better; mean ± standard error over %lld test images (%lld "
        "importance samples, seed %llu, mnp %s). All pixels are scored, those of the context too; "
        "the context has no noise. Contexts: N pixels at random, or the top half, the left half, "
        "the middle half of rows and columns; all models see the same ones (networks look at %d "
        "random pixels of a larger context).\n\n"
        "- *All pixels together*: the log-density of the image given the context. Networks: "
        "importance-weighted bound. Kriging: the chain rule along a path from coarse to fine, each "
        "pixel given its %d nearest among wells and pixels before it (the density of sequential "
        "Gaussian simulation).\n"
        "- *Each pixel by itself*: the mean over pixels of log p(pixel | context). Networks: "
        "averaged over latents drawn from the context, over the pixels that the bound's proposal "
        "did not see. Kriging: N(kriging mean, kriging variance); up to %d wells all are used, for "
        "the halves and the centre the %d nearest (a moving neighbourhood).\n"
        "- *Ordinary kriging*: a Gaussian process with unknown constant mean on the values "
        "themselves. *Latent GP*: the same on normal scores u = Phi^-1(F(y)), F the distribution "
        "of "
        "noisy training values: a continuous score rather than an indicator, because it gives a "
        "density of y. Both take covariances by restricted likelihood from %lld training images, "
        "and both count the noise of 0.05 on targets, in either scoring.\n"
        "- The paper's numbers are quoted as printed: its text has 128 × 128 pixels and 20 000 "
        "training images, the authors' configuration 64 × 64; ± seems to be the standard deviation "
        "over images.\n\n",
        (long long)t->functions, (long long)t->samples, (unsigned long long)t->s.c->seed,
        mnp_version(), TABLE3_SEEN, KRIGE_NEAR, KRIGE_EXACT, KRIGE_NEAR, (long long)t->fit_images);
}

static void put_behaviour_rows(buf *b, const char *name, const table3_behaviour *rows) {
    for (int k = 0; k < TABLE3_UNIFORM; k++) {
        const table3_behaviour *v = &rows[k];
        double near = (v->bin_sd[0] + v->bin_sd[1]) / (v->bin_pixels[0] + v->bin_pixels[1]);
        double far = 0, pixels = 0;
        for (int j = 4; j < TABLE3_BINS; j++) far += v->bin_sd[j], pixels += v->bin_pixels[j];
        buf_printf(b, "| %s | %s | ", name, table3_contexts[k].name);
        md_pm(b, v->sd / v->pixels, NAN, 3);
        buf_text(b, " | ");
        md_pm(b, far / pixels / near, NAN, 2);
        for (int j = 0; j < 2; j++) {
            buf_text(b, " | ");
            md_pm(b, v->kept[j] / v->wells, NAN, 3);
        }
        buf_text(b, " |\n");
    }
}

static void put_behaviour(buf *b, const table3 *t) {
    buf_printf(b,
               "## Uncertainty, %lld × %lld pixels, %lld images\n\n"
               "Mean sd; the ratio of the mean sd far from wells (8 pixels or more) to that near "
               "them (below 2); the share of wells where the mean is within 0.05 and 0.1 of the "
               "measured value. Maps of networks are those of `mnp predict`, wells honoured by "
               "kriging of the misfit; *as drawn*: `--honour off`, the model's own functions. The "
               "scores above are the model's own.\n\n"
               "| model | N | sd | far / near | within 0.05 | within 0.1 |\n"
               "|---|---|---|---|---|---|\n",
               (long long)t->size[0].side, (long long)t->size[0].side,
               (long long)t->behaviour_images);
    for (int m = 0; m < TABLE3_MODELS; m++) put_behaviour_rows(b, full_names[m], t->behaviour[m]);
    for (int m = 0; m < TABLE3_NETS; m++) {
        char name[64];
        snprintf(name, sizeof name, "%s, as drawn", full_names[m]);
        put_behaviour_rows(b, name, t->as_drawn[m]);
    }
    buf_text(b, "\n");
}

void table3_markdown(buf *b, const study *s) {
    const table3 *t = (const table3 *)s;
    md_title(b, s, "Table 3: river images from a few measurements",
             "small images, models far from trained, few images. The table shows that everything "
             "runs.");
    put_notes(b, t);
    for (int k = 0; k < t->sizes; k++) put_size(b, t, k);
    put_behaviour(b, t);
    buf_text(b, "Pictures: `panel-*.svg` (mean and sd by context), `draws-*.svg` (realisations "
                "given 40 wells), `spread.svg` (sd by number of wells and distance).\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_cell(cli_json *j, const table3 *t, const table3_cell *c, int scoring, int law) {
    json_object_begin(&j->w);
    cli_json_put(j, INTEGER("size", t->size[c->size].side), TEXT("model", table3_models[c->model]),
                 TEXT("context", table3_contexts[c->context].name),
                 TEXT("scoring", table3_scorings[scoring]), TEXT("density", table3_laws[law]),
                 NUMBER("loglik", c->loglik[scoring][law]), NUMBER("se", c->se[scoring][law]));
    bool quoted = c->model < PAPER_ROWS && scoring == TABLE3_NOISY && law == TABLE3_JOINT;
    cli_json_put(j, NUMBER("paper", quoted ? paper[c->model].score[c->context] : NAN));
    json_object_end(&j->w);
}

static void put_behaviour_json(cli_json *j, const table3 *t) {
    list_begin(j, "uncertainty");
    for (int row = 0; row < (TABLE3_MODELS + TABLE3_NETS) * TABLE3_UNIFORM; row++) {
        int m = row / TABLE3_UNIFORM, k = row % TABLE3_UNIFORM, drawn = m - TABLE3_MODELS;
        const table3_behaviour *v = drawn < 0 ? &t->behaviour[m][k] : &t->as_drawn[drawn][k];
        json_object_begin(&j->w);
        cli_json_put(j, TEXT("model", table3_models[drawn < 0 ? m : drawn]));
        json_key(&j->w, "as_drawn");
        json_put_bool(&j->w, drawn >= 0);
        cli_json_put(j, INTEGER("wells", table3_contexts[k].wells), NUMBER("sd", v->sd / v->pixels),
                     NUMBER("within_noise", v->kept[0] / v->wells),
                     NUMBER("within_two_noise", v->kept[1] / v->wells));
        list_begin(j, "sd_by_distance");
        for (int b = 0; b < TABLE3_BINS; b++)
            json_put_number(&j->w, v->bin_sd[b] / v->bin_pixels[b]);
        json_array_end(&j->w);
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

void table3_json(cli_json *j, const study *of) {
    const table3 *t = (const table3 *)of;
    cli_json_put(j, INTEGER("seed", of->c->seed), INTEGER("functions", t->functions),
                 INTEGER("samples", t->samples));
    list_begin(j, "cells");
    for (int k = 0; k < of->count; k++)
        for (int s = 0; s < TABLE3_SCORINGS; s++)
            for (int l = 0; l < TABLE3_LAWS; l++)
                put_cell(j, t, (const table3_cell *)(const void *)study_cell(of, k), s, l);
    json_array_end(&j->w);
    put_behaviour_json(j, t);
}
