/* predict_internal.h: the inside of a predictor, shared by predict.c and predict_levels.c. */
#ifndef MNP_RUN_PREDICT_INTERNAL_H
#define MNP_RUN_PREDICT_INTERNAL_H

#include "run/particles.h"
#include "run/predict.h"
#include "run/stream.h"

struct predictor {
    env *env;
    const model *m;
    int64_t T; /* latents of one sample; 0: a process without */
    pool *pool;
    backend_choice device;
    double *x, *y; /* the set, scaled */
    int64_t count, cap;
    runner *latents[2]; /* with noise of their own; with noise that is fed */
    stream *stream;     /* instead of it; NULL: the model or the device has none */
    particles *particles;
    int64_t particles_asked;   /* how many of them; there may be more */
    sampler_progress progress; /* of the present drawing; or NULL     */
    void *progress_user;
    runner *query[QUERY_KINDS];
    double *z, *spare; /* (T, chunks chunk, Z); the next ones */
    double *eps;       /* (T, chunks chunk, Z): noise that is fed */
    double *work;      /* of a query */
    int64_t *lengths;  /* (2, chunks) */
    size_t z_cap, spare_cap, eps_cap, work_cap, lengths_cap;
    int64_t samples;       /* asked for; 0: none drawn */
    int64_t asked;         /* those of the drawing in progress */
    int64_t drawn_from;    /* points of the set they were drawn from */
    int64_t chunks, chunk; /* chunks of `chunk` samples, at least `samples` in all */
    uint64_t seed;
};

/* Are all `count` numbers about n targets, the targets running fastest, finite? */
mnp_status predictor_check_answer(const predictor *p, const double *y, int64_t count, int64_t n);
/* Rows of the set that go before the targets of a query. */
int64_t predictor_lead(const predictor *p);
/* Compiles the graph of a kind of query for n targets where it is not yet. */
mnp_status predictor_ensure_query(predictor *p, process_query kind, int64_t n);

/* What a run of the sampler says of itself, in raw units and for n points. */
mnp_draw_report predictor_report(mnp_condition condition, const sampler_report *r, int64_t n,
                                 double log_scale);

#endif
