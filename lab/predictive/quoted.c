/* quoted.c: published numbers on tasks of the same definition, found on functions of their authors'
 * own; some of them are known from notes of others alone. */
#include "lab/predictive/predictive.h"

static const char notes[] = "their own functions; some such numbers come through notes of others";
static const char trained_on_rbf[] =
    "may be out of distribution: of models that were trained on RBF";
static const char variant[] = "a close variant of the task";

static const quoted table[] = {
    {"tnp-rbf", "FlowNP", "joint", "1.69", notes},
    {"tnp-rbf", "TNP-A", "joint", "1.65", notes},
    {"tnp-rbf", "NDP", "joint", "1.20", notes},
    {"tnp-rbf", "TNP-D", "each by itself", "1.39", notes},
    {"tnp-matern", "FlowNP", "joint", "1.30", notes},
    {"tnp-matern", "TNP-A", "joint", "1.29", notes},
    {"tnp-matern", "NDP", "joint", ".94", notes},
    {"tnp-periodic", "FlowNP", "joint", "-.50", trained_on_rbf},
    {"tnp-periodic", "TNP-A", "joint", "-.58", trained_on_rbf},
    {"tnp-periodic", "NDP", "joint", "-.54", trained_on_rbf},
    {"np-eq", "ConvGNP", "KL to the true process", "0-.01", variant},
    {"np-matern", "ConvGNP", "KL to the true process", "0-.01", variant},
    {"np-weakly-periodic", "ConvGNP", "KL to the true process", "0-.01", variant},
    {"sawtooth", "best published", "joint", "1.16",
     "the model is not named, and the numbers of points are ours"},
};

const quoted *quoted_at(int k) {
    return k >= 0 && k < (int)(sizeof table / sizeof *table) ? &table[k] : NULL;
}
