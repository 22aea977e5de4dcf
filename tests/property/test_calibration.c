/* test_calibration.c: ranks of functions drawn from a model itself. With random weights a model is
 * some process, and its inference network knows nothing of it: draws of the network given a part of
 * a function fail, those of exact conditioning pass, and so do those of a Gaussian process, whose
 * conditional has a closed form. Evidences of the sampler add up as those of one process. */
#include "lab.h"
#include "run/calibrate.h"
#include "run/laws.h"
#include "run/ranks.h"
#include "scarce.h"

enum { N = 240, S = 31, M = 4 };

static env world;
static pool *workers, *alone;
static dataset *data;

typedef struct verdict {
    int64_t ranks[N];
    bool inside;
    double chance;
} verdict;

static const sampler_opts exact = {.kind = SAMPLER_EXACT, .gradients = 400};

static verdict calibrate(const model *m, pool *p, const sampler_opts *how) {
    verdict v = {0};
    int64_t below[S + 2];
    calibrate_report r;
    ranks_band b;
    calibrate_opts o = {.functions = N, .draws = S, .context = M, .how = how, .seed = 2};
    mnp_status status = calibrate_ranks(&world, m, data, p, &o, v.ranks, &r);
    if (status != MNP_OK) check_bad(__FILE__, __LINE__, world.error);
    CHECK(r.hurried == 0 && (how ? r.acceptance > 0.3 : isnan(r.acceptance)));
    ranks_count(v.ranks, N, S, below);
    CHECK(ranks_band_make(&world, N, S, 0.99, &b) == MNP_OK);
    CHECK(ranks_chance(&world, N, S, below, &v.chance) == MNP_OK);
    v.inside = ranks_inside(&b, below);
    ranks_band_free(&world, &b);
    return v;
}

#define SMALL " encoder=deepset enc_width=8 d_r=8 head_hidden=8 flow_hidden=8 rff=3 y_scale=0"

static const struct {
    const char *kind, *options;
    double gain; /* of the weights: as large as the sampler can follow */
} models[] = {{"np", "d_z=3 sigma_floor=0.1" SMALL, 1.3},
              {"mnp", "T=2 transition=rqs d_z=2" SMALL, 0.9}};
enum { MODELS = sizeof models / sizeof *models };

static bool open(lab *l, int k) {
    CASE(models[k].options);
    if (!lab_open(l, models[k].kind, models[k].options, 1)) return false;
    lab_randomise(l, models[k].gain, 1);
    return true;
}

static void only_exact_draws_are_calibrated(void) {
    for (int k = 0; k < MODELS; k++) {
        lab l;
        if (!open(&l, k)) return;
        verdict network = calibrate(l.m, workers, NULL), right = calibrate(l.m, workers, &exact);
        printf("%s %s: network %.2e, exact %.3f\n", models[k].kind, models[k].options,
               network.chance, right.chance);
        CHECK(!network.inside && network.chance < 0.01);
        CHECK(right.inside && right.chance > 0.01);
        lab_close(&l);
    }
}

static void a_gaussian_process_is_calibrated(void) {
    lab l;
    if (!lab_open(&l, "gp", "", 1)) return;
    verdict v = calibrate(l.m, workers, NULL);
    CHECK(v.inside && v.chance > 0.01);
    lab_close(&l);
}

static void threads_change_no_rank(void) {
    const sampler_opts refine = {.kind = SAMPLER_REFINE, .gradients = 20};
    lab l;
    if (!open(&l, 0)) return;
    verdict one = calibrate(l.m, alone, &refine), two = calibrate(l.m, workers, &refine);
    CHECK(memcmp(one.ranks, two.ranks, sizeof one.ranks) == 0);
    lab_close(&l);
}

static laws check_laws(const model *m, const sampler_opts *how, int64_t samples) {
    laws out;
    laws_opts o = {.functions = 12,
                   .samples = samples,
                   .replicates = 3,
                   .context = M,
                   .targets = 6,
                   .exact = how,
                   .seed = 3};
    if (laws_measure(&world, m, data, workers, &o, &out) != MNP_OK)
        check_bad(__FILE__, __LINE__, world.error);
    printf("order %.4f +- %.4f (%.1f errors), noise %.4f; joint %+.4f +- %.4f; half: noise %.4f\n",
           out.all.order, out.all.order_se, out.all.errors, out.all.noise, out.all.joint,
           out.all.joint_se, out.half.noise);
    CHECK(out.functions == 12 && out.all.samples == samples && out.half.samples == samples / 2);
    return out;
}

/* The functions are of the data, not of the model: the laws hold for any points. */
static void evidences_are_of_one_process(void) {
    lab l;
    if (!open(&l, 1)) return;
    laws right = check_laws(l.m, &exact, 64), network = check_laws(l.m, NULL, 64);
    CHECK(right.hurried == 0);
    CHECK(fabs(right.all.errors) < 4 && fabs(right.all.joint) < 4 * right.all.joint_se);
    CHECK(right.all.joint_se < 0.2 && right.all.noise < 0.9 * right.half.noise);
    /* the same points, asked for at once or in turn */
    CHECK(network.all.joint > 4 * hypot(network.all.joint_se, right.all.joint_se));
    lab_close(&l);
}

/* Both measurements, as small as they go. */
static mnp_status measure_all(env *e, const model *m) {
    const sampler_opts few = {.kind = SAMPLER_EXACT, .gradients = 20};
    int64_t ranks[1], below[4];
    calibrate_report r;
    laws l;
    double chance;
    calibrate_opts c = {.functions = 1, .draws = 2, .context = 1, .how = &few};
    laws_opts o = {
        .functions = 1, .samples = 2, .replicates = 2, .context = 1, .targets = 2, .exact = &few};
    MNP_TRY(calibrate_ranks(e, m, data, alone, &c, ranks, &r));
    ranks_count(ranks, 1, 2, below);
    MNP_TRY(ranks_chance(e, 1, 2, below, &chance));
    ranks_band b;
    MNP_TRY(ranks_band_make(e, 1, 2, 0.9, &b));
    ranks_band_free(e, &b);
    return laws_measure(e, m, data, alone, &o, &l);
}

static void memory_may_end_anywhere(void) {
    lab l;
    scarce memory;
    env e;
    if (!open(&l, 0)) return;
    env_init(&e);
    e.allocator = (mnp_allocator){scarce_alloc, scarce_free, &memory};
    mnp_status status = MNP_ENOMEM;
    long most = 0;
    for (; status == MNP_ENOMEM && most < 5000; most++) {
        memory = (scarce){.left = most};
        status = measure_all(&e, l.m);
        CHECK(memory.live == 0);
        CHECK(status == MNP_ENOMEM || status == MNP_OK);
    }
    printf("%ld allocations\n", most - 1);
    CHECK(status == MNP_OK && most > 50);
    lab_close(&l);
}

int main(void) {
    data_source s = {.split = DATA_TEST, .functions = 50, .seed = 1};
    env_init(&world);
    CHECK(pool_create(&world, 2, &workers) == MNP_OK);
    CHECK(pool_create(&world, 1, &alone) == MNP_OK);
    CHECK(dataset_open(&world, workers, "rbf", &s, &data) == MNP_OK);
    RUN_STATISTICS(only_exact_draws_are_calibrated);
    RUN(a_gaussian_process_is_calibrated);
    RUN(threads_change_no_rank);
    RUN_STATISTICS(evidences_are_of_one_process);
    RUN(memory_may_end_anywhere);
    dataset_destroy(data);
    pool_destroy(workers);
    pool_destroy(alone);
    return check_done();
}
