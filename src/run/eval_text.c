/* eval_text.c: contexts and scores as text: what a caller asks for, and what a model file notes. */
#include <string.h>

#include "run/eval.h"
#include "util/text.h"

mnp_status eval_read_context(env *e, const char *text, const dataset *d, eval_opts *o) {
    static const char *const names[] = {"uniform", "top", "left", "center"};
    size_t length = strcspn(text, ":");
    int kind = 0;
    while (kind < 4 && (strlen(names[kind]) != length || strncmp(text, names[kind], length) != 0))
        kind++;
    char lo[32] = "", hi[32] = "";
    int parts = text[length] ? sscanf(text + length, ":%31[0-9]:%31[0-9]", lo, hi) : 0;
    size_t used = length + (parts > 0 ? 1 + strlen(lo) : 0) + (parts > 1 ? 1 + strlen(hi) : 0);
    bool sizes = parts > 0 && text_parse_int64(lo, &o->lo) == TEXT_OK && o->lo <= INT32_MAX &&
                 text_parse_int64(parts > 1 ? hi : lo, &o->hi) == TEXT_OK && o->hi <= INT32_MAX;
    if (kind == 4 || text[used] || sizes != (kind == EVAL_UNIFORM))
        return env_fail(e, MNP_EINVAL,
                        "context '%.40s': uniform:N, uniform:LO:HI, top, left or center", text);
    if (kind != EVAL_UNIFORM && !d->rows)
        return env_fail(e, MNP_EINVAL, "context %s needs images, and %s are none", text, d->name);
    o->context = (eval_context)kind;
    return MNP_OK;
}

static const char *note_key(eval_protocol protocol) {
    return protocol == EVAL_STRICT ? "score.strict" : "score.authors";
}

/* "2.3862 +- 0.0063 on 5000 functions, 20 samples, seed 0". */
mnp_status eval_note(env *e, model *m, eval_protocol protocol, const eval_noted *s) {
    if (!s) return model_note_set(e, m, note_key(protocol), NULL);
    buf text;
    buf_init(&text, e);
    buf_fixed(&text, s->loglik, 4);
    buf_text(&text, " +- ");
    buf_fixed(&text, s->se, 4);
    mnp_status status =
        buf_printf(&text, " on %lld functions, %lld samples, seed %llu", (long long)s->functions,
                   (long long)s->samples, (unsigned long long)s->seed);
    if (status == MNP_OK) status = model_note_set(e, m, note_key(protocol), buf_str(&text));
    buf_free(&text);
    return status;
}

mnp_status eval_noted_score(env *e, const model *m, eval_protocol protocol, eval_noted *out) {
    const char *text = model_note_get(m, note_key(protocol));
    char loglik[32], se[32], functions[32], samples[32], seed[32];
    int used = 0;
    *out = (eval_noted){0};
    if (!text) return MNP_OK;
    sscanf(text, "%31[^ ] +- %31[^ ] on %31[0-9] functions, %31[0-9] samples, seed %31[0-9]%n",
           loglik, se, functions, samples, seed, &used);
    if (used > 0 && text[used] == '\0' && text_parse_double(loglik, &out->loglik) == TEXT_OK &&
        text_parse_double(se, &out->se) == TEXT_OK &&
        text_parse_int64(functions, &out->functions) == TEXT_OK &&
        text_parse_int64(samples, &out->samples) == TEXT_OK &&
        text_parse_uint64(seed, &out->seed) == TEXT_OK)
        return MNP_OK;
    return env_fail(e, MNP_EFORMAT, "the model's note %s is no score: '%.80s'", note_key(protocol),
                    text);
}
