/* file_roles.c: from a file to roles: its shape, which column is what, and what each is measured
 * in.
 */
#include <math.h>
#include <string.h>

#include "data/file_internal.h"
#include "data/melt.h"

/* Is the table in one row a point, though the model's own had one curve in a row? */
static bool has_inputs(const reading *r, const roles *like) {
    int32_t found = 0;
    for (int32_t k = 0; k < like->n_x; k++)
        if (!like->x[k].constant) found += columns_named(r->t, like->x[k].name) != COLUMN_NONE;
    return found > 0;
}

/* The names that a wide table's x and y had for the model. */
static void wide_names(reading *r, const roles *like) {
    for (int32_t k = 0; k < like->n_x && !r->s.x_columns; k++)
        if (!like->x[k].constant) r->s.x_columns = like->x[k].name;
    if (!r->s.y_column) r->s.y_column = like->y.name;
}

/* In a wide table --x and --y name the columns that it is turned into. */
static mnp_status melt_curves(reading *r) {
    const roles *like = model_roles_of(r);
    if (!r->s.wide && !(like && like->wide)) return MNP_OK;
    if (r->s.asked && has_inputs(r, like)) return MNP_OK;
    r->roles.wide = true;
    if (r->s.asked) wide_names(r, like);
    size_t least = r->s.asked ? 1 : MELT_VALUES; /* one point of a new curve will do */
    MNP_TRY(melt_wide(r->e, &r->t, r->s.x_columns, r->s.y_column, least));
    if (!r->s.y_column) r->s.y_column = csv_header(r->t, r->t->columns - 1);
    r->s.x_columns = NULL;
    if (!r->s.function_column && strcmp(csv_header(r->t, 0), "row") == 0)
        r->s.function_column = "row";
    return MNP_OK;
}

/* Places to ask about that do not say of which output: of each. */
static mnp_status ask_all_outputs(reading *r) {
    const roles *like = model_roles_of(r);
    if (!r->s.asked || !r->s.without_y || like->n_outputs == 0) return MNP_OK;
    if (columns_named(r->t, ROLES_OUTPUT) != COLUMN_NONE) return MNP_OK;
    const role *output = &like->x[like->n_x - 1];
    return melt_repeat(r->e, &r->t, ROLES_OUTPUT, output->levels, output->n_levels);
}

/* Several outputs become one, and which it is an input. */
static mnp_status melt_several(reading *r) {
    columns *c = &r->c;
    if (c->n_y < 2) return MNP_OK;
    for (int32_t k = 0; k < c->n_y; k++)
        MNP_TRY(roles_add_output(&r->roles, csv_header(r->t, c->y[k])));
    MNP_TRY(melt_outputs(r->e, &r->t, c->y, c->n_y, ROLES_OUTPUT, "y"));
    c->x[c->n_x++] = r->t->columns - 2;
    c->y[0] = r->t->columns - 1;
    c->n_y = 1;
    return MNP_OK;
}

/* The levels of the input "output" are the outputs as they were named. */
static mnp_status take_outputs(reading *r, role *x) {
    x->unit = ROLE_CATEGORY;
    x->lo = x->hi = NAN;
    x->levels = env_alloc(r->e, (size_t)r->roles.n_outputs, sizeof *x->levels, "the outputs");
    if (!x->levels) return MNP_ENOMEM;
    for (int32_t k = 0; k < r->roles.n_outputs; k++) {
        x->levels[k] = env_strdup(r->e, r->roles.outputs[k].name);
        if (!x->levels[k]) return MNP_ENOMEM;
        x->n_levels++;
    }
    return MNP_OK;
}

static mnp_status check_like(reading *r, const roles *like) {
    if (like->n_x != r->c.n_x)
        return env_fail(r->e, MNP_EINVAL,
                        "%s: %d input column%s where the model has %d (name them with --x)",
                        r->t->name, r->c.n_x, r->c.n_x == 1 ? "" : "s", like->n_x);
    if (like->n_outputs != r->roles.n_outputs && !r->s.without_y)
        return env_fail(r->e, MNP_EINVAL, "%s: the model has %d outputs (name them with --y)",
                        r->t->name, like->n_outputs ? like->n_outputs : 1);
    return MNP_OK;
}

static mnp_status find_roles(reading *r) {
    roles *u = &r->roles;
    const roles *like = model_roles_of(r);
    if (like) MNP_TRY(check_like(r, like));
    for (int32_t k = 0; k < r->c.n_group; k++)
        MNP_TRY(roles_add_group(u, csv_header(r->t, r->c.group[k])));
    u->x = env_alloc(r->e, (size_t)r->c.n_x + 1, sizeof *u->x, "the columns of a table");
    if (!u->x) return MNP_ENOMEM;
    for (int32_t k = 0; k < r->c.n_x; k++) {
        role *x = &u->x[u->n_x++];
        bool there = r->c.x[k] != COLUMN_NONE;
        x->name = env_strdup(r->e, there ? csv_header(r->t, r->c.x[k]) : like->x[k].name);
        if (!x->name) return MNP_ENOMEM;
        if (like)
            MNP_TRY(role_copy(r->e, &like->x[k], x));
        else if (u->n_outputs && k == r->c.n_x - 1)
            MNP_TRY(take_outputs(r, x));
        else if (!r->c.has_action) /* the context of decisions is numbers */
            MNP_TRY(role_look(r->e, r->t, r->c.x[k], x));
    }
    u->y.name = env_strdup(r->e, r->s.without_y ? like->y.name : csv_header(r->t, r->c.y[0]));
    if (!u->y.name) return MNP_ENOMEM;
    if (r->c.has_action) MNP_TRY(actions_collect(r->e, r->t, r->c.action, &r->actions));
    r->dims = roles_dims(u) + r->actions.count;
    if (r->dims <= MODEL_X_MAX) return MNP_OK;
    return env_fail(r->e, MNP_EFORMAT,
                    "%s: %d inputs, counting every category; the limit is %d (name those that "
                    "matter with --x)",
                    r->t->name, r->dims, MODEL_X_MAX);
}

mnp_status reading_understand(reading *r, const char *path, buf *columns_said) {
    if (!r->t && r->s.text)
        MNP_TRY(csv_parse(r->e, path, r->s.text, r->s.bytes, '\0', &r->t));
    else if (!r->t)
        MNP_TRY(csv_read(r->e, path, '\0', &r->t));
    MNP_TRY(melt_curves(r));
    MNP_TRY(ask_all_outputs(r));
    MNP_TRY(columns_choose(r->e, r->t, &r->s, &r->c, columns_said));
    MNP_TRY(columns_said->status);
    MNP_TRY(melt_several(r));
    return find_roles(r);
}
