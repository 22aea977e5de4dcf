/* service.c: models and what is true of them (service.h). */
#include <string.h>

#include "serve/service_internal.h"

service_limits service_default_limits(void) {
    return (service_limits){.body = SERVICE_BODY_MAX,
                            .context = SERVICE_CONTEXT_MAX,
                            .places = SERVICE_PLACES_MAX,
                            .joint = SERVICE_JOINT_MAX,
                            .samples = SERVICE_SAMPLES_MAX,
                            .values = SERVICE_VALUES_MAX,
                            .gradients = SERVICE_GRADIENTS_MAX,
                            .pixels = SERVICE_PIXELS_MAX};
}

/* ---- a list of models ------------------------------------------------------------------------ */

static const served *find(const served_list *l, const char *name) {
    for (size_t k = 0; k < l->count; k++)
        if (strcmp(l->of[k].name, name) == 0) return &l->of[k];
    return NULL;
}

static mnp_status add(env *e, served_list *l, const char *name, mnp_model *m) {
    if (l->count == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 16;
        served *of = env_grow(e, l->of, l->cap, cap, sizeof *of, "models");
        if (!of) return MNP_ENOMEM;
        l->of = of;
        l->cap = cap;
    }
    char *copy = env_strdup(e, name);
    if (!copy) return MNP_ENOMEM;
    l->of[l->count++] = (served){.name = copy, .model = m};
    return MNP_OK;
}

static void list_free(env *e, served_list *l) {
    for (size_t k = 0; k < l->count; k++) {
        env_free(e, l->of[k].name);
        mnp_model_destroy(l->of[k].model);
    }
    env_free(e, l->of);
}

/* ---- true processes -------------------------------------------------------------------------- */

enum { NAME = 512 };

/* A family without a known truth is none; any other failure is one. */
static mnp_status add_oracle(service *s, const char *family) {
    char name[NAME];
    mnp_data *data = NULL;
    mnp_model *m = NULL;
    mnp_data_opts o = {.size = sizeof o, .functions = 1};
    snprintf(name, sizeof name, "oracle:%.500s", family);
    if (find(&s->oracles, name)) return MNP_OK;
    mnp_status status = mnp_data_open(s->ctx, family, &o, &data);
    if (status == MNP_OK) status = mnp_model_create(s->ctx, "oracle", NULL, NULL, data, 0, &m);
    mnp_data_destroy(data);
    if (status == MNP_EINVAL) return MNP_OK;
    if (status != MNP_OK) return env_fail(&s->env, status, "%s", mnp_last_error(s->ctx));
    status = add(&s->env, &s->oracles, name, m);
    if (status != MNP_OK) mnp_model_destroy(m);
    return status;
}

/* "periodic:noise_var=1e-3" is of the family periodic. */
static bool is_family(const char *data) {
    const char *family;
    size_t length = strcspn(data, ":");
    for (int k = 0; (family = mnp_data_family(k, NULL)) != NULL; k++)
        if (strlen(family) == length && strncmp(family, data, length) == 0) return true;
    return false;
}

/* Variants of a family get an oracle once a model asks for it. */
static mnp_status find_truth(service *s, served *m) {
    char name[NAME];
    const char *data = mnp_model_note(m->model, "data");
    if (!data || !is_family(data) || strlen(data) > NAME - 16) return MNP_OK;
    MNP_TRY(add_oracle(s, data));
    snprintf(name, sizeof name, "oracle:%.500s", data);
    const served *truth = find(&s->oracles, name);
    if (truth) m->truth = truth->name;
    return MNP_OK;
}

/* ---- the service ----------------------------------------------------------------------------- */

static void take_limits(service_limits *to, const service_limits *from) {
    int64_t *limit = (int64_t *)to;
    const int64_t *given = (const int64_t *)from;
    for (size_t k = 0; k < sizeof *to / sizeof *limit; k++)
        if (given[k] > 0) limit[k] = given[k];
}

mnp_status service_create(const service_opts *opts, service **out) {
    env e;
    const char *family;
    *out = NULL;
    env_init(&e);
    if (opts && opts->allocator.alloc) e.allocator = opts->allocator;
    service *s = env_alloc(&e, 1, sizeof *s, "a service");
    if (!s) return MNP_ENOMEM;
    s->env = e;
    s->limits = service_default_limits();
    if (opts) take_limits(&s->limits, &opts->limits);
    if (opts) s->device = opts->device;
    mnp_ctx_opts c = {.size = sizeof c, .threads = 1};
    if (opts) c.allocator = opts->allocator;
    mnp_status status = mnp_ctx_create(&c, &s->ctx);
    for (int k = 0; status == MNP_OK && (family = mnp_data_family(k, NULL)) != NULL; k++)
        status = add_oracle(s, family);
    if (status == MNP_OK)
        *out = s;
    else
        service_destroy(s);
    return status;
}

void service_destroy(service *s) {
    if (!s) return;
    env e = s->env;
    list_free(&e, &s->models);
    list_free(&e, &s->oracles);
    mnp_ctx_destroy(s->ctx);
    env_free(&e, s);
}

const char *service_error(const service *s) {
    return s->env.error;
}

const service_limits *service_limits_of(const service *s) {
    return &s->limits;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* The last part of a path, without .safetensors. */
static void name_of(const char *path, char out[NAME]) {
    static const char ending[] = ".safetensors";
    const char *slash = strrchr(path, '/');
    snprintf(out, NAME, "%.400s", slash ? slash + 1 : path);
    size_t length = strlen(out), tail = sizeof ending - 1;
    if (length > tail && strcmp(out + length - tail, ending) == 0) out[length - tail] = '\0';
}

/* A device that does not work, or not with this model, is found here and not by a request. */
static mnp_status check_device(service *s, const mnp_model *m) {
    mnp_predictor *p = NULL;
    if (!s->device) return MNP_OK;
    mnp_status status = mnp_predictor_create(s->ctx, m, s->device, &p);
    mnp_predictor_destroy(p);
    return status == MNP_OK ? status : env_fail(&s->env, status, "%s", mnp_last_error(s->ctx));
}

/* The model is the service's from here on. */
static mnp_status adopt(service *s, const char *wanted, mnp_model *m) {
    char name[NAME];
    snprintf(name, sizeof name, "%.400s", *wanted ? wanted : "model");
    for (int k = 2; service_find(s, name); k++)
        snprintf(name, sizeof name, "%.400s-%d", *wanted ? wanted : "model", k);
    mnp_status status = check_device(s, m);
    if (status == MNP_OK) status = add(&s->env, &s->models, name, m);
    if (status != MNP_OK) {
        mnp_model_destroy(m);
        return status;
    }
    served *last = &s->models.of[s->models.count - 1];
    last->device = s->device;
    status = find_truth(s, last);
    if (status == MNP_OK) return status;
    mnp_model_destroy(m);
    env_free(&s->env, last->name);
    s->models.count--;
    return status;
}

mnp_status service_load(service *s, const char *path) {
    char name[NAME];
    mnp_model *m = NULL;
    mnp_status status = mnp_model_load(s->ctx, path, &m);
    if (status != MNP_OK) return env_fail(&s->env, status, "%s", mnp_last_error(s->ctx));
    name_of(path, name);
    return adopt(s, name, m);
}

mnp_status service_load_memory(service *s, const char *name, const void *data, size_t bytes) {
    mnp_model *m = NULL;
    mnp_status status = mnp_model_load_memory(s->ctx, data, bytes, &m);
    if (status != MNP_OK) return env_fail(&s->env, status, "%s", mnp_last_error(s->ctx));
    return adopt(s, name, m);
}

int64_t service_models(const service *s) {
    return (int64_t)s->models.count;
}

const char *service_model_name(const service *s, int64_t k) {
    return k >= 0 && k < service_models(s) ? s->models.of[k].name : NULL;
}

const served *service_find(const service *s, const char *name) {
    const served *m = find(&s->models, name);
    return m ? m : find(&s->oracles, name);
}
