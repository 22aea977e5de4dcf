/* test_service.c: the service answers what the command prints, to the last digit: predict, sample,
 * score and maps of models of several kinds. The command is run as a program of its own. */
#include <unistd.h>

#include "check.h"
#include "serve/service.h"
#include "util/csv.h"
#include "util/json.h"

static env E;
static service *served;
static service_worker *worker;
static buf reply;
static json_doc *doc;
static char folder[512], command[512], models[512];

/* ---- the two sides --------------------------------------------------------------------------- */

/* mnp ARGS in the test's folder; its standard output goes to out.txt. */
static void run_command(const char *args) {
    char line[4096];
    snprintf(line, sizeof line, "cd '%.500s' && '%.500s' %.2500s >out.txt 2>err.txt", folder,
             command, args);
    CHECK(system(line) == 0);
    if (check_.bad) fprintf(stderr, "%s\n", line);
}

static void write_file(const char *name, const char *text) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(fsio_write(&E, path, text, strlen(text)) == MNP_OK);
}

static csv_table *table(const char *name) {
    char path[1024];
    csv_table *t = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(csv_read(&E, path, '\0', &t) == MNP_OK);
    return t;
}

static const json_value *ask(const char *verb, const char *body) {
    int status = service_answer(worker, verb, body, strlen(body), NULL, &reply);
    CHECK(status == 200);
    if (status != 200) fprintf(stderr, "%s %s: %s\n", verb, body, buf_str(&reply));
    json_destroy(doc);
    CHECK(json_parse(&E, "reply", buf_str(&reply), reply.len, &doc) == MNP_OK);
    return json_root(doc);
}

static double at(const json_value *list, size_t i) {
    const json_value *v = json_at(list, i);
    return v && v->kind == JSON_NUMBER ? v->number : (double)NAN;
}

/* Column `name` of a table is that list of numbers. */
static void same_column(const csv_table *t, const char *name, const json_value *list) {
    size_t k = 0;
    CASE(name);
    while (k < t->columns && strcmp(csv_header(t, k), name) != 0) k++;
    CHECK(k < t->columns && list && list->count == t->rows);
    for (size_t i = 0; k < t->columns && i < t->rows; i++) {
        double v;
        CHECK(fsio_parse_double(csv_cell(t, i, k), strlen(csv_cell(t, i, k)), &v));
        NEAR(at(list, i), v, 0, 0);
    }
}

/* ---- forecasts ------------------------------------------------------------------------------- */

/* `points`: a context as CSV and as JSON; places on a grid. */
typedef struct question {
    const char *model, *csv, *json, *grid, *json_grid, *how;
} question;

static const question questions[] = {
    {"mnp-monotonic", "x,y\n-1,-0.5\n0.25,0.1\n1,0.7\n", "{\"x\":[-1,0.25,1],\"y\":[-0.5,0.1,0.7]}",
     "-2:2:17", "[-2,2,17]", "network"},
    {"mnp-monotonic", "x,y\n-1,-0.5\n0.25,0.1\n", "{\"x\":[-1,0.25],\"y\":[-0.5,0.1]}", "-1:1:5",
     "[-1,1,5]", "refine"},
    {"np-rbf", "x,y\n", "{\"x\":[],\"y\":[]}", "-2:2:9", "[-2,2,9]", NULL},
    {"np-rbf", "x,y\n0.3,1\n0.3,1.1\n", "{\"x\":[0.3,0.3],\"y\":[1,1.1]}", "-2:2:9", "[-2,2,9]",
     "exact"},
    {"lmm", "week,size\n1,2.5\n4,6.1\n", "{\"x\":[1,4],\"y\":[2.5,6.1]}", "0:10:11", "[0,10,11]",
     NULL},
    {"ore", "east,north,grade\n1,2,6\n4,4,5.5\n9,1,5\n",
     "{\"x\":[[1,2],[4,4],[9,1]],\"y\":[6,5.5,5]}", "0:10:3,0:9:4", "[[0,10,3],[0,9,4]]", NULL},
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

static const char *file_of(const question *q, char out[700]) {
    bool shipped = strstr(q->model, "mnp-") || strstr(q->model, "np-");
    snprintf(out, 700, "%s/%s.safetensors", shipped ? models : folder, q->model);
    return out;
}

static void flags_of(const question *q, char out[1024]) {
    char file[700];
    snprintf(out, 1024, "'%s' --context c.csv --grid=%s --seed 5 %s%s", file_of(q, file), q->grid,
             q->how ? "--condition " : "", q->how ? q->how : "");
    write_file("c.csv", q->csv);
}

static void fields_of(const question *q, char out[1024]) {
    snprintf(out, 1024, "\"model\":\"%s\",\"context\":%s,\"grid\":%s,\"seed\":5%s%s%s", q->model,
             q->json, q->json_grid, q->how ? ",\"condition\":\"" : "", q->how ? q->how : "",
             q->how ? "\"" : "");
}

static void predictions_are_the_commands(void) {
    char flags[1024], fields[1024], line[2048];
    for (int k = 0; k < QUESTIONS; k++) {
        const question *q = &questions[k];
        flags_of(q, flags);
        fields_of(q, fields);
        snprintf(line, sizeof line, "predict %s --samples 12 --out p.csv", flags);
        run_command(line);
        snprintf(line, sizeof line, "{%s,\"samples\":12}", fields);
        const json_value *root = ask("predict", line), *quantiles = json_get(root, "quantiles");
        csv_table *t = table("p.csv");
        same_column(t, "mean", json_get(root, "mean"));
        same_column(t, "sd", json_get(root, "sd"));
        same_column(t, "q05", json_at(json_get(quantiles, "values"), 0));
        same_column(t, "q50", json_at(json_get(quantiles, "values"), 2));
        same_column(t, "q95", json_at(json_get(quantiles, "values"), 4));
        if (json_get(root, "x")->items[0].kind == JSON_NUMBER)
            same_column(t, csv_header(t, 0), json_get(root, "x"));
        csv_destroy(t);
    }
}

static void draws_are_the_commands(void) {
    char flags[1024], fields[1024], line[2048];
    for (int k = 0; k < QUESTIONS; k++)
        for (int noise = 0; noise < 2; noise++) {
            const question *q = &questions[k];
            flags_of(q, flags);
            fields_of(q, fields);
            snprintf(line, sizeof line, "sample %s -n 7 --base %s --out s.csv", flags,
                     noise ? "normal" : "zero");
            run_command(line);
            snprintf(line, sizeof line, "{%s,\"samples\":7,\"noise\":%s}", fields,
                     noise ? "true" : "false");
            const json_value *draws = json_get(ask("sample", line), "draws");
            csv_table *t = table("s.csv");
            CHECK(draws && draws->count == 7 && t->rows == 7 * json_at(draws, 0)->count);
            for (size_t i = 0; i < t->rows && draws; i++) {
                double v;
                size_t n = json_at(draws, 0)->count;
                CHECK(csv_number(&E, t, i, t->columns - 1, &v, NULL) == MNP_OK);
                NEAR(at(json_at(draws, i / n), i % n), v, 0, 0);
            }
            csv_destroy(t);
        }
}

/* ---- scores ---------------------------------------------------------------------------------- */

static void scores_are_the_commands(void) {
    static const char *const members[] = {"loglik",       "loglik_prior_sampling",
                                          "total",        "total_prior_sampling",
                                          "loglik_draws", "loglik_evidence",
                                          "points",       "loglik_evidence_sd",
                                          "context",      "samples",
                                          "seed",         "acceptance",
                                          "log_evidence", "fit_after",
                                          "gradients"};
    static const char *const targets[] = {"x,y\n0.5,0.2\n-0.7,0.4\n", "week,size\n5,7\n6,8.5\n",
                                          "east,north,grade\n2,2,6\n3,7,6.5\n"};
    static const char *const json[] = {"{\"x\":[0.5,-0.7],\"y\":[0.2,0.4]}",
                                       "{\"x\":[5,6],\"y\":[7,8.5]}",
                                       "{\"x\":[[2,2],[3,7]],\"y\":[6,6.5]}"};
    char flags[1024], fields[1024], line[4096], file[700], path[1024];
    for (int k = 0; k < QUESTIONS; k++) {
        const question *q = &questions[k];
        int which = strcmp(q->model, "lmm") == 0 ? 1 : strcmp(q->model, "ore") == 0 ? 2 : 0;
        flags_of(q, flags);
        write_file("t.csv", targets[which]);
        snprintf(line, sizeof line,
                 "score '%s' --context c.csv --targets t.csv --samples 9 --seed 3 %s %s --json "
                 "--quiet",
                 file_of(q, file), q->how ? "--condition" : "", q->how ? q->how : "");
        run_command(line);
        snprintf(fields, sizeof fields,
                 "{\"model\":\"%s\",\"context\":%s,\"targets\":%s,\"samples\":9,\"seed\":3%s%s%s}",
                 q->model, q->json, json[which], q->how ? ",\"condition\":\"" : "",
                 q->how ? q->how : "", q->how ? "\"" : "");
        const json_value *root = ask("score", fields);
        json_doc *want = NULL;
        snprintf(path, sizeof path, "%s/out.txt", folder);
        CHECK(json_read(&E, path, 1 << 20, &want) == MNP_OK);
        for (size_t i = 0; want && i < sizeof members / sizeof *members; i++) {
            const json_value *v = json_get(json_root(want), members[i]);
            const json_value *got = json_get(root, members[i]);
            CASE(members[i]);
            if (!v) continue; /* the network's scores have no drawing */
            CHECK(got && got->kind == v->kind);
            if (got && v->kind == JSON_NUMBER) NEAR(got->number, v->number, 0, 0);
        }
        json_destroy(want);
    }
}

/* ---- maps ------------------------------------------------------------------------------------ */

static void maps_are_the_commands(void) {
    char line[2048];
    write_file("c.csv", "row,col,value\n3,4,0.9\n8,2,-0.8\n");
    snprintf(line, sizeof line,
             "predict '%.500s/geofluvial.safetensors' --context c.csv --grid 12x9 --samples 6 "
             "--seed 2 --out m.csv",
             models);
    run_command(line);
    const json_value *root =
        ask("map", "{\"model\":\"geofluvial\",\"rows\":12,\"cols\":9,\"samples\":6,\"seed\":2,"
                   "\"draws\":1,\"wells\":{\"pixel\":[[3,4],[8,2]],\"value\":[0.9,-0.8]}}");
    csv_table *t = table("m.csv");
    same_column(t, "mean", json_get(root, "mean"));
    same_column(t, "sd", json_get(root, "sd"));
    same_column(t, "p_channel", json_get(root, "below"));
    csv_destroy(t);
    NEAR(at(json_at(json_get(root, "draws"), 0), 3 * 9 + 4), 0.9, 2e-3, 0); /* honoured */
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Those that are not shipped, made by the command. */
static void make_models(void) {
    buf csv;
    buf_init(&csv, &E);
    buf_text(&csv, "plant,week,size\n");
    for (int f = 0; f < 15; f++)
        for (int i = 0; i < 8; i++) {
            buf_printf(&csv, "p%d,%d,", f, i);
            buf_fixed(&csv, 1 + 0.3 * f + (1.2 + 0.05 * f) * i + 0.2 * sin(3.0 * f + 5 * i), 4);
            buf_text(&csv, "\n");
        }
    write_file("plants.csv", buf_str(&csv));
    buf_clear(&csv);
    buf_text(&csv, "site,east,north,grade\n");
    for (int f = 0; f < 12; f++)
        for (int i = 0; i < 9; i++) {
            buf_printf(&csv, "s%d,%d,%d,", f, (3 * f + 7 * i) % 11, (5 * f + 2 * i) % 10);
            buf_fixed(&csv, 5 + sin(f + i) + 0.1 * i, 4);
            buf_text(&csv, "\n");
        }
    write_file("ores.csv", buf_str(&csv));
    buf_free(&csv);
    run_command("train --model lmm --data plants.csv --out lmm --quiet");
    run_command("train --data ores.csv --group site --x east,north --y grade --preset tiny --steps "
                "3 --out ore --quiet");
}

static void load(const char *where, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.safetensors", where, name);
    CHECK(service_load(served, path) == MNP_OK);
}

static void models_are_loaded(void) {
    make_models();
    CHECK(service_create(NULL, &served) == MNP_OK);
    load(models, "mnp-monotonic");
    load(models, "np-rbf");
    load(models, "geofluvial");
    load(folder, "lmm");
    load(folder, "ore");
    CHECK(service_worker_create(served, 1, &worker) == MNP_OK);
    const json_value *list = json_get(ask("models", ""), "models");
    CHECK(list && list->count == 5);
    STREQ(json_get(json_at(list, 3), "process")->string, "lmm");
    STREQ(json_get(json_at(list, 1), "truth")->string, "oracle:rbf");
    NEAR(json_get(json_at(json_get(json_at(list, 1), "inputs"), 0), "lo")->number, -2, 0, 0);
    NEAR(json_get(json_get(json_at(list, 3), "output"), "lo")->number, 1, 0.5, 0);
    CHECK(json_get(json_at(list, 2), "images")->boolean);
}

int main(void) {
    char here[256];
    const char *mnp = getenv("MNP"), *tmp = getenv("TEST_TMP");
    env_init(&E);
    buf_init(&reply, &E);
    if (!getcwd(here, sizeof here)) return 1;
    snprintf(models, sizeof models, "%s/models", here);
    snprintf(folder, sizeof folder, "%s", tmp ? tmp : "/tmp");
    bool whole = mnp && *mnp == '/';
    snprintf(command, sizeof command, "%s%s%s", whole ? "" : here, whole ? "" : "/",
             mnp ? mnp : "build/mnp");
    RUN(models_are_loaded);
    RUN(predictions_are_the_commands);
    RUN(draws_are_the_commands);
    RUN(scores_are_the_commands);
    RUN(maps_are_the_commands);
    json_destroy(doc);
    buf_free(&reply);
    service_worker_destroy(worker);
    service_destroy(served);
    return check_done();
}
