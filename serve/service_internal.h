/* service_internal.h: what the files of the service share. A call that answers returns 0, or the
 * status of HTTP that the request ends with; its sentence is then in the worker's env. */
#ifndef MNP_SERVE_INTERNAL_H
#define MNP_SERVE_INTERNAL_H

#include "serve/service.h"
#include "serve/service_condition.h"

enum {
    ANSWER_OK = 200,
    ANSWER_WRONG = 400,   /* the request is wrong              */
    ANSWER_UNKNOWN = 404, /* no such model or verb             */
    ANSWER_LARGE = 413,   /* too many bytes                    */
    ANSWER_REFUSED = 422, /* a limit, or the model refuses it  */
    ANSWER_FAILED = 500,
    ANSWER_BUSY = 503 /* no memory, or cancelled           */
};

/* ---- the service ----------------------------------------------------------------------------- */

typedef struct served {
    char *name;
    mnp_model *model;
    const char *truth;  /* the name of the oracle that is the model's true process, or NULL */
    const char *device; /* where it is computed; NULL: the processor */
} served;

typedef struct served_list {
    served *of;
    size_t count, cap;
} served_list;

struct service {
    env env;
    mnp_ctx *ctx; /* for loading */
    service_limits limits;
    const char *device; /* NULL: the processor */
    served_list models, oracles;
};

const served *service_find(const service *s, const char *name); /* NULL: none has it */
/* The process of a model, from its options. */
void service_process(const mnp_model *m, char out[32]);

/* ---- a worker -------------------------------------------------------------------------------- */

/* Memory that requests use one after the other, by purpose. */
typedef enum slot {
    SLOT_CONTEXT, /* x (n, x_dim), then y (n)              */
    SLOT_TARGETS, /* the same                              */
    SLOT_PLACES,  /* x (n, x_dim)                          */
    SLOT_LEVELS,  /* probabilities                         */
    SLOT_SUMMARY, /* mean, sd, quantiles; layers of a map  */
    SLOT_DRAWS,   /* values of functions                   */
    SLOTS
} slot;

enum { KEPT_MAX = 4 };

/* A predictor that stays for the next request, and what its functions were drawn from. */
typedef struct kept {
    const mnp_model *model; /* NULL: the place is free */
    mnp_predictor *p;
    uint64_t used; /* number of the request */
    bool drawn;    /* what follows is of its functions */
    double *points;
    size_t room; /* numbers that `points` has room for */
    int64_t n;
    condition_ask ask;
    mnp_draw_opts opts;
    drawn how;
} kept;

struct service_worker {
    const service *s;
    env env;
    mnp_ctx *ctx;
    service_hooks hooks; /* of the present request */
    uint64_t requests;
    kept kept[KEPT_MAX];
    struct {
        void *data;
        size_t bytes;
    } slots[SLOTS];
};

/* Memory for `count` elements, until the slot is taken again; NULL: there is none, with a text. */
void *worker_take(service_worker *w, slot which, size_t count, size_t size);
int worker_refuse(service_worker *w, int status, const char *fmt, ...) MNP_PRINTF(3, 4);
/* The status after a call of the library, or of util/, that failed. */
int worker_failed(service_worker *w, mnp_status status);
int worker_failed_here(service_worker *w, mnp_status status);
/* Seconds, monotonic. */
double worker_now(void);

/* ---- requests -------------------------------------------------------------------------------- */

typedef enum verb {
    VERB_MODELS,
    VERB_PREDICT,
    VERB_SAMPLE,
    VERB_CHAIN,
    VERB_SCORE,
    VERB_MAP,
    VERB_OPENAPI,
    VERBS
} verb;

typedef enum layer { LAYER_MEAN = 1, LAYER_SD = 2, LAYER_BELOW = 4 } layer;

typedef struct request {
    const served *model;
    int64_t x_dim;
    mnp_set context, targets; /* wells of a map are a context whose x are pixels */
    mnp_set places;
    int64_t samples, seed, towards, draws;
    double angle;
    condition_ask ask;
    int64_t levels; /* quantiles */
    const double *level;
    bool bands, noise, marginal, honour;
    int64_t rows, cols;
    double threshold;
    bool has_threshold;
    unsigned layers; /* sum of `layer` */
    buf warnings;    /* of the points, a line each */
} request;

typedef enum field_kind {
    FIELD_MODEL,
    FIELD_SET,
    FIELD_AT,
    FIELD_GRID,
    FIELD_INTEGER,
    FIELD_REAL,
    FIELD_SWITCH,
    FIELD_CONDITION,
    FIELD_LEVELS,
    FIELD_WELLS,
    FIELD_LAYERS
} field_kind;

enum { FIELD_NO_LIMIT = 1 << 20 };

/* A field of requests: the same table makes the parser and the description. */
typedef struct field_def {
    const char *name;
    field_kind kind;
    unsigned verbs;       /* bits 1 << verb */
    size_t at;            /* in a request */
    double lo, hi;        /* of a number */
    size_t limit;         /* in service_limits: what bounds it above; or FIELD_NO_LIMIT */
    const char *fallback; /* the default as JSON; NULL: there is none */
    const char *help;
} field_def;

const field_def *request_field(size_t k); /* NULL after the last */
/* Parses the body of a verb into *q, whose arrays lie in the worker's slots. request_free() also
 * after a failure. */
int request_parse(service_worker *w, verb v, const char *body, size_t bytes, request *q);
void request_free(request *q);

/* ---- replies --------------------------------------------------------------------------------- */

void reply_integer(json_writer *w, const char *key, int64_t v);
void reply_number(json_writer *w, const char *key, double v);
void reply_text(json_writer *w, const char *key, const char *text); /* NULL: null */
/* Numbers as the member `key` (NULL: as an item): a list of n, and lists of lists. */
void reply_numbers(json_writer *w, const char *key, const double *v, int64_t n);
void reply_rows(json_writer *w, const char *key, const double *v, int64_t rows, int64_t n);
/* The same of floats, and of numbers that are written as floats. */
void reply_floats(json_writer *w, const char *key, const float *v, int64_t n);
void reply_narrow(json_writer *w, const char *key, const double *v, int64_t n);
/* "x" of places: a list, or a list of lists where there are several inputs. */
void reply_places(json_writer *w, const request *q);

/* A predictor with the functions that the request asks for, and the options they are drawn with.
 * It is the worker's; after other functions were drawn with it these are forgotten. */
int request_draw(service_worker *w, request *q, drawn *how, mnp_predictor **out);
mnp_draw_opts request_opts(const service_worker *w, const request *q);
void request_forget(service_worker *w, const request *q);
/* What is doubtful about the context and the points asked about. */
void request_warn(request *q, const mnp_set *asked, const char *what);

int answer_models(service_worker *w, request *q, json_writer *to);
int answer_predict(service_worker *w, request *q, json_writer *to);
int answer_sample(service_worker *w, request *q, json_writer *to);
int answer_chain(service_worker *w, request *q, json_writer *to);
int answer_score(service_worker *w, request *q, json_writer *to);
int answer_map(service_worker *w, request *q, json_writer *to);
int answer_openapi(service_worker *w, request *q, json_writer *to);

#endif
