/* quoted.c: published numbers on tasks of the same definition, found on functions of their authors'
 * own. They are known from notes of third parties: the paper named is that of the model, and its
 * table was not seen. */
#include "lab/predictive/predictive.h"

static const char flownp[] =
    "H. Abu Hamad and D. Rosenbaum, Flow Matching Neural Processes, NeurIPS 2025";
static const char tnp[] =
    "T. Nguyen and A. Grover, Transformer Neural Processes: Uncertainty-Aware "
    "Meta Learning Via Sequence Modeling, ICML 2022";
static const char ndp[] =
    "V. Dutordoir, A. Saul, Z. Ghahramani and F. Simpson, Neural Diffusion Processes, ICML 2023";
static const char convgnp[] =
    "S. Markou, J. Requeima, W. P. Bruinsma, A. Vaughan and R. E. Turner, Practical Conditional "
    "Neural Processes Via Tractable Dependent Predictions, ICLR 2022";

#define THIRD "as quoted by third parties, on functions of the authors' own"
static const char third[] = THIRD;
static const char trained_on_rbf[] =
    THIRD "; may be out of distribution: of a model that was trained on RBF";
static const char variant[] = THIRD ", of a close variant of the task";
static const char unknown[] = THIRD "; the model is not named, and the numbers of points are ours";

static const quoted table[] = {
    {"tnp-rbf", "FlowNP", "joint", "1.69", flownp, third},
    {"tnp-rbf", "TNP-A", "joint", "1.65", tnp, third},
    {"tnp-rbf", "NDP", "joint", "1.20", ndp, third},
    {"tnp-rbf", "TNP-D", "each by itself", "1.39", tnp, third},
    {"tnp-matern", "FlowNP", "joint", "1.30", flownp, third},
    {"tnp-matern", "TNP-A", "joint", "1.29", tnp, third},
    {"tnp-matern", "NDP", "joint", ".94", ndp, third},
    {"tnp-periodic", "FlowNP", "joint", "-.50", flownp, trained_on_rbf},
    {"tnp-periodic", "TNP-A", "joint", "-.58", tnp, trained_on_rbf},
    {"tnp-periodic", "NDP", "joint", "-.54", ndp, trained_on_rbf},
    {"np-eq", "ConvGNP", "KL to the true process", "0-.01", convgnp, variant},
    {"np-matern", "ConvGNP", "KL to the true process", "0-.01", convgnp, variant},
    {"np-weakly-periodic", "ConvGNP", "KL to the true process", "0-.01", convgnp, variant},
    {"sawtooth", "best published", "joint", "1.16", "Source not known", unknown},
};

const quoted *quoted_at(int k) {
    return k >= 0 && k < (int)(sizeof table / sizeof *table) ? &table[k] : NULL;
}
