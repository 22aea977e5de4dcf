/* fuzz_data.c: any text as a person's CSV data. What is read is written and read again; a model is
 * made for it, and the table read as the model's own. */
#include <math.h>

#include "fuzz/world.h"

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const char *const seeds[] = {
        "id,x,y\na,0,1\na,1,2\na,2,NA\nb,0,1e-3\nb,0.5,-2\nc,1,1\n",
        "depth;grain;porosity\n1;2;0.2\n2;2.5;0.3\n3;1;0.25\n4;;0.1\n",
        "x,action,reward,who\n1,a,0.5,u\n2,b,1,u\n3,a,0,v\n4,b,2,v\n",
        "t\ty\n1.6e9\t1\n1600000001\t2\n1600000002\t3\n",
        "w;when;soil;y\na;2024-01-01;clay;1,5\na;2024-01-02;;2\nb;2024-02-29T12:00;sand;3\n",
        "boy,sex,age2,age3.5,age10\np,m,80,91,140\nq,f,,90,138\n",
        "\"\",f,g,t,y,z\n1,a,1,0,1,2\n2,a,1,1,2,3\n3,a,2,0,3,4\n4,a,2,1,4,5\n",
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

int fuzz_rounds(void) {
    return 2500;
}

static void look(mnp_ctx *ctx, const mnp_data *data) {
    int64_t functions = mnp_data_functions(data), dims = mnp_data_x_dim(data), n, total = 0;
    const float *x, *y;
    for (int64_t i = 0; i < functions; i++) {
        FUZZ_CHECK(mnp_data_function(ctx, data, i, &n, &x, &y) == MNP_OK && n > 1);
        for (int64_t k = 0; k < n; k++) FUZZ_CHECK(isfinite(y[k]));
        for (int64_t k = 0; k < n * dims; k++) FUZZ_CHECK(isfinite(x[k]));
        total += n;
    }
    FUZZ_CHECK(functions > 0 && total == mnp_data_points(data) && mnp_data_report(data)[0]);
    for (int64_t k = 0; k < dims; k++) FUZZ_CHECK(mnp_data_x_name(data, k));
}

static void use(mnp_ctx *ctx, const mnp_data *data) {
    char path[WORLD_PATH];
    mnp_model *m = NULL;
    mnp_data *again = NULL;
    mnp_data_opts o = {.size = sizeof o, .holdout = -1};
    int64_t dims = mnp_data_x_dim(data);
    look(ctx, data);
    if (world_said(ctx, mnp_model_create(ctx, "np", "tiny", NULL, data, 1, &m)) == MNP_OK) {
        mnp_data_opts like = {.size = sizeof like, .like = m, .split = MNP_TEST};
        world_said(ctx, mnp_data_open(ctx, mnp_data_name(data), &like, &again));
        mnp_data_destroy(again);
        again = NULL;
        mnp_table *t = NULL;
        bool with_y = mnp_data_points(data) % 2;
        if (world_said(ctx, mnp_table_open(ctx, m, mnp_data_name(data), with_y, NULL, &t)) ==
            MNP_OK)
            for (int64_t k = 0; k < mnp_table_rows(t) * dims; k++) /* NaN: the context says it */
                FUZZ_CHECK(isfinite(mnp_table_x(t)[k]) || (!with_y && isnan(mnp_table_x(t)[k])));
        mnp_table_destroy(t);
    }
    mnp_model_destroy(m);
    if (world_said(ctx, mnp_data_write_csv(ctx, data, world_path(path, "again.csv"))) != MNP_OK)
        return;
    /* columns are guessed anew, perhaps as others: then points may be dropped, never added */
    if (world_said(ctx, mnp_data_open(ctx, path, &o, &again)) == MNP_OK)
        FUZZ_CHECK(mnp_data_points(again) <= mnp_data_points(data));
    mnp_data_destroy(again);
}

/* The same bytes in memory are read as the file was. */
static void read_memory(mnp_ctx *ctx, const uint8_t *bytes, size_t count, const mnp_data_opts *o,
                        mnp_status status, const mnp_data *data) {
    mnp_data *same = NULL;
    FUZZ_CHECK(world_said(ctx, mnp_data_open_memory(ctx, (const char *)bytes, count, o, &same)) ==
               status);
    FUZZ_CHECK(mnp_data_points(same) == mnp_data_points(data) &&
               mnp_data_functions(same) == mnp_data_functions(data));
    mnp_data_destroy(same);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    char path[WORLD_PATH];
    mnp_ctx *ctx = world_open();
    mnp_data *data = NULL;
    mnp_data_opts o = {.size = sizeof o,
                       .holdout = count % 3 ? -1 : 0.4,
                       .split = count % 5 ? MNP_TRAIN : MNP_VALID,
                       .action_column = count % 7 ? NULL : "action",
                       .wide = count % 4 == 1,
                       .function_column = count % 11 == 2 ? "f,g" : NULL,
                       .y_column = count % 11 == 2 ? "y,z" : NULL};
    world_write(path, "data.csv", bytes, count);
    mnp_status status = mnp_data_open(ctx, path, &o, &data);
    FUZZ_CHECK((status == MNP_OK) == (data != NULL));
    if (world_said(ctx, status) == MNP_OK) use(ctx, data);
    read_memory(ctx, bytes, count, &o, status, data);
    mnp_data_destroy(data);
    world_close(ctx);
    return 0;
}
