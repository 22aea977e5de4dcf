/* fuzz_wells.c: any text as a table of measurements, read as `mnp predict --context` reads it: the
 * reader of the command itself. What is read conditions a model, which then honours it. */
#include "cli/outputs.h"
#include "cli/points.h"
#include "fuzz/world.h"
#include "mnp_map.h"

extern const command command_predict;

/* What the command's main file has beside main() itself: nobody presses a key here. */
bool cli_interrupted(void) {
    return false;
}
int cli_make_context(cli *c, int share) {
    (void)c, (void)share;
    return EXIT_FAILED;
}

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const char *const seeds[] = {
        "row,col,value\n0,0,1\n3,2,-0.5\n7,7,0.25\n3,2,-0.5\n",
        "name;a;b;c\nw1;0.5;-0.5;1e3\nw2;1;1;NA\n",
        "col\trow\tvalue\tother\n1\t2\t3\t4\n",
        "row,col,value\n",
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

int fuzz_rounds(void) {
    return 3000;
}

enum { WELLS = 40 };

static void use(cli *c, mnp_model *m, const points *wells) {
    mnp_set set = {wells->n, wells->x, wells->y};
    double mean[4];
    mnp_map_frame frame = {.rows = 2, .cols = 2, .lo = {-1, -1}, .hi = {1, 1}};
    mnp_map_opts o = {.size = sizeof o, .samples = 2, .honour = &set};
    mnp_map out = {.size = sizeof out, .mean = mean};
    (void)world_said(c->ctx, mnp_map_make(c->ctx, m, &frame, &set, &o, &out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char path[WORLD_PATH];
    mnp_model *m = NULL;
    points wells;
    outputs files = {.closed = true};
    cli c = {.command = &command_predict,
             .ctx = world_open(),
             .quiet = true, /* it is silent */
             .held = true,
             .outputs = &files};
    env_init(&files.e);
    env_init(&c.env);
    c.env.allocator = (mnp_allocator){world_alloc, world_free, NULL};
    buf_init(&c.warnings, &c.env);
    FUZZ_CHECK(mnp_model_create(c.ctx, "np", "tiny",
                                "x_dim=2 rff=1 d_z=2 d_r=2 enc_width=2 heads=1 flow_hidden=2", NULL,
                                1, &m) == MNP_OK);
    point_names names = {.x_dim = 2, .x = {"row", "col"}, .y = "value", .model = m};
    world_write(path, "wells.csv", data, bytes);
    int code = points_read(&c, &names, path, true, &wells);
    FUZZ_CHECK(code == 0 ? wells.n >= 0 && wells.x && wells.y : !wells.x && !wells.y);
    if (code == 0 && wells.n <= WELLS) use(&c, m, &wells);
    points_free(&c, &wells);
    buf_free(&c.warnings);
    mnp_model_destroy(m);
    for (size_t k = 0; k < files.count; k++) env_free(&files.e, files.files[k].name);
    env_free(&files.e, files.files);
    world_close(c.ctx);
    return 0;
}
