/* cmd_gen.c: mnp gen DATASET: functions of a built-in family as CSV; images in gen_images.c. */
#include "cli/cli.h"
#include "cli/gen_images.h"
#include "cli/outputs.h"
#include "data/images.h"

static const flag_def flags[] = {
    {"functions", "N", "how many functions (default 100)"},
    {"split", "S", "train|valid|test: which stream they come from (default train)"},
    {"out", "F.csv", "where to write (default: stdout); geofluvial: DIR or F.npy"},
    {"images", "N", "geofluvial: how many images (default 100)"},
    {"size", "PIXELS", "geofluvial: side of an image (default 128)"},
    {"value", "V", "geofluvial to F.npy: sdf|gray|mask (default sdf)"},
    {"wells", "K", "geofluvial to F.npy: K random pixels of the first image as F-wells.csv"},
    {"png", "K", "geofluvial to DIR: the first K images of each split as PNG too"},
    RANK_FLAGS,
    {"sheet", "F.png", "geofluvial: contact sheet (for a folder DIR/sheet.png is the default)"},
};
static const char *const of_images[] = {"images", "size", "value", "png", "sheet", "wells"};

static void list_families(FILE *to) {
    fprintf(to, "\nfamilies (constants as NAME:key=value,key=value):\n");
    const char *name, *help;
    for (int k = 0; (name = mnp_data_family(k, &help)); k++)
        fprintf(to, "  %-10s %s\n", name, help);
    gen_images_help(to);
}

static int run(cli *c) {
    if (images_drawn(c->args[0])) return gen_images(c);
    for (size_t k = 0; k < sizeof of_images / sizeof *of_images; k++)
        if (cli_has(c, of_images[k]))
            return cli_fail(c, EXIT_USAGE, "--%s is for images: mnp gen geofluvial", of_images[k]);
    mnp_data_opts o = {.size = sizeof o, .seed = c->seed};
    o.functions = cli_int(c, "functions", 100, 1, 100000000);
    o.split = (mnp_split)cli_choice(c, "split", "train|valid|test", 0);
    if (cli_bad(c)) return c->status;
    const char *out = cli_text(c, "out", "/dev/stdout");
    int code = cli_input_data(c, c->args[0]);
    if (code == 0) code = cli_output(c, out);
    if (code) return code;
    mnp_data *data = NULL;
    mnp_status status = mnp_data_open(c->ctx, c->args[0], &o, &data);
    if (status == MNP_OK && cli_writes(c)) status = mnp_data_write_csv(c->ctx, data, out);
    code = status == MNP_OK ? 0 : cli_failed(c, status);
    if (code == 0 && cli_has(c, "out"))
        cli_say(c, "%s: %lld functions, %lld points of %s, seed %llu", out,
                (long long)mnp_data_functions(data), (long long)mnp_data_points(data),
                mnp_data_name(data), (unsigned long long)c->seed);
    if (code == 0) {
        cli_json j;
        cli_json_begin(c, &j);
        cli_json_text(&j, "data", mnp_data_name(data));
        cli_json_integer(&j, "functions", mnp_data_functions(data));
        cli_json_integer(&j, "points", mnp_data_points(data));
        cli_json_integer(&j, "seed", (int64_t)c->seed);
        cli_json_text(&j, "out", out);
        cli_json_end(c, &j);
    }
    mnp_data_destroy(data);
    return code;
}

const command command_gen = {
    .name = "gen",
    .args = "DATASET [--functions N | --images N] [--seed S] [--out F]",
    .summary = "write functions of a built-in family, or images of rivers",
    .details = "Families of one seed share what they draw alike: function i of rbf,\n"
               "matern and periodic has the same inputs and the same noise. Scores on\n"
               "them are paired, not independent; take other seeds where they must be.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .spreads = true,
    .run = run,
    .more_help = list_families};
