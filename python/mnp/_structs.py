"""The constants, structs and calls of include/mnp*.h. Written by scripts/python_structs.py.

Names are those of C. Pointers are addresses (c_void_p); a struct with a `size` sets it by itself.
"""

from ctypes import (
    CFUNCTYPE,
    Structure,
    c_bool,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
    sizeof,
)


class Sized(Structure):
    """A struct whose first member is its size."""

    def __init__(self, **values):
        super().__init__(sizeof(type(self)), **values)


VERSION = "0.1.0"

MNP_REACH = 16777216.0
MNP_FAR = 100.0
MNP_OK = 0
MNP_EINVAL = 1
MNP_ENOMEM = 2
MNP_EIO = 3
MNP_EFORMAT = 4
MNP_EUNSUPPORTED = 5
MNP_EDEVICE = 6
MNP_ENUMERIC = 7
MNP_ECANCELLED = 8
MNP_EPEER = 9
MNP_LOG_DEBUG = 0
MNP_LOG_INFO = 1
MNP_LOG_WARN = 2
MNP_TRAIN = 0
MNP_VALID = 1
MNP_TEST = 2
MNP_COLUMN_OTHER = 0
MNP_COLUMN_GROUP = 1
MNP_COLUMN_NUMBER = 2
MNP_COLUMN_DATE = 3
MNP_COLUMN_CATEGORY = 4
MNP_COLUMN_Y = 5
MNP_STRICT = 0
MNP_AUTHORS = 1
MNP_ORDER_RANDOM = 0
MNP_ORDER_X = 1
MNP_SCORE_BINS = 8
MNP_BASE_ZERO = 0
MNP_BASE_NORMAL = 1
MNP_NETWORK = 0
MNP_REFINE = 1
MNP_EXACT = 2
MNP_DRAW_RHAT = 1
MNP_DRAW_REJECTED = 2
MNP_DRAW_FIT = 4
MNP_DRAW_HURRIED = 8
MNP_DRAW_FEW = 16
MNP_DRAW_MISSED = 32
MNP_LEVELS = 9
MNP_PREDICTIVE_ROWS = 9
MNP_PIT_BINS = 10
MNP_OPTION_INTEGER = 0
MNP_OPTION_REAL = 1
MNP_OPTION_SWITCH = 2
MNP_OPTION_CHOICE = 3
MNP_OPTION_RANGE = 4
MNP_OPTION_INTEGER_RANGE = 5
MNP_FIT_FIRST = 0
MNP_FIT_RANDOM = 1
MNP_FIT_TASKS = 2
MNP_MAP_VALUES = 0
MNP_MAP_DOUBT = 1
MNP_MAP_CODES = 2
MNP_RIVERS_SDF = 0
MNP_RIVERS_GRAY = 1
MNP_RIVERS_MASK = 2
MNP_PLOT_AUTO = 0
MNP_PLOT_BLUE = 1
MNP_PLOT_VERMILION = 2
MNP_PLOT_GREEN = 3
MNP_PLOT_PURPLE = 4
MNP_PLOT_ORANGE = 5
MNP_PLOT_SKY = 6
MNP_PLOT_YELLOW = 7
MNP_PLOT_BLACK = 8
MNP_PLOT_GREY = 9
MNP_PLOT_SOLID = 0
MNP_PLOT_DASHED = 1
MNP_PLOT_DOTTED = 2
MNP_PLOT_DOT = 0
MNP_PLOT_RING = 1
MNP_PLOT_SQUARE = 2
MNP_PLOT_CROSS = 3
MNP_PLOT_X = 0
MNP_PLOT_Y = 1
MNP_PLOT_DAYS = 0
MNP_PLOT_SECONDS = 1
MNP_PLOT_MAP_GREY = 0
MNP_PLOT_MAP_VIRIDIS = 1
MNP_PLOT_SIDE_MAX = 64


class mnp_allocator(Structure):
    _fields_ = [
        ("alloc", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_size_t)),
        ("free", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("user", c_void_p),
    ]


class mnp_ctx_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("threads", c_int),
        ("allocator", mnp_allocator),
        ("log", CFUNCTYPE(None, c_void_p, c_int, c_char_p)),
        ("log_user", c_void_p),
        ("cancel", CFUNCTYPE(c_bool, c_void_p)),
        ("cancel_user", c_void_p),
    ]


class mnp_set(Structure):
    _fields_ = [
        ("n", c_int64),
        ("x", c_void_p),
        ("y", c_void_p),
    ]


class mnp_data_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("split", c_int),
        ("functions", c_int64),
        ("seed", c_uint64),
        ("holdout", c_double),
        ("function_column", c_char_p),
        ("x_columns", c_char_p),
        ("y_column", c_char_p),
        ("cache", c_char_p),
        ("action_column", c_char_p),
        ("test", c_double),
        ("like", c_void_p),
        ("wide", c_bool),
    ]


class mnp_tensor(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("rows", c_int64),
        ("cols", c_int64),
        ("stride", c_int64),
        ("data", c_void_p),
        ("trained", c_bool),
    ]


class mnp_train_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("options", c_char_p),
        ("seed", c_uint64),
        ("device", c_char_p),
    ]


class mnp_train_report(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("step", c_int64),
        ("steps", c_int64),
        ("loss", c_double),
        ("kl", c_double),
        ("loglik", c_double),
        ("grad_norm", c_double),
        ("rate", c_double),
        ("valid", c_double),
        ("best_valid", c_double),
        ("best_step", c_int64),
        ("rounding", c_double),
        ("sampling", c_double),
        ("shift", c_double),
        ("rounding_at", c_int64),
        ("exact_from", c_int64),
    ]


class mnp_function_scores(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("function", c_int64),
        ("context", c_int64),
        ("targets", c_int64),
        ("joint", c_double),
        ("in_turn", c_double),
        ("order_sd", c_double),
        ("covered50", c_double),
        ("covered80", c_double),
        ("covered95", c_double),
        ("marginal", c_void_p),
        ("mixture", c_void_p),
        ("crps", c_void_p),
        ("mean", c_void_p),
        ("sd", c_void_p),
        ("entropy", c_void_p),
        ("joint_error", c_double),
        ("joint_bias", c_double),
        ("joint_hurried", c_double),
    ]


class mnp_eval_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("functions", c_int64),
        ("samples", c_int64),
        ("draws", c_int64),
        ("protocol", c_int),
        ("context_lo", c_int64),
        ("context_hi", c_int64),
        ("seed", c_uint64),
        ("device", c_char_p),
        ("progress", CFUNCTYPE(None, c_void_p, c_int64, c_int64)),
        ("progress_user", c_void_p),
        ("context", c_char_p),
        ("targets", c_int64),
        ("proposal", c_int64),
        ("noise", c_double),
        ("seen", c_int64),
        ("sizes", c_void_p),
        ("n_sizes", c_int64),
        ("orders", c_int64),
        ("order", c_int),
        ("each", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("each_user", c_void_p),
        ("no_truth", c_bool),
    ]


class mnp_scores(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("loglik", c_double),
        ("se", c_double),
        ("elbo", c_double),
        ("kl", c_double),
        ("ess", c_double),
        ("loglik_prior_sampling", c_double),
        ("se_prior_sampling", c_double),
        ("loglik_true", c_double),
        ("se_true", c_double),
        ("coverage50", c_double),
        ("coverage80", c_double),
        ("coverage95", c_double),
        ("crps", c_double),
        ("functions", c_int64),
        ("points", c_int64),
        ("samples", c_int64),
        ("bins", c_int),
        ("bin_lo", c_int64 * 8),
        ("bin_hi", c_int64 * 8),
        ("bin_functions", c_int64 * 8),
        ("bin_loglik", c_double * 8),
        ("bin_se", c_double * 8),
        ("loglik_pixels", c_double),
        ("se_pixels", c_double),
        ("loglik_in_turn", c_double),
        ("se_in_turn", c_double),
        ("order_sd", c_double),
        ("rounding", c_double),
    ]


class mnp_noted_score(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("loglik", c_double),
        ("se", c_double),
        ("functions", c_int64),
        ("samples", c_int64),
        ("seed", c_uint64),
    ]


class mnp_turn_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("order", c_int),
        ("orders", c_int64),
        ("seed", c_uint64),
        ("device", c_char_p),
    ]


class mnp_laws(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("permutation", c_double),
        ("marginal", c_double),
        ("conditional", c_double),
        ("conditional_se", c_double),
        ("functions", c_int64),
        ("samples", c_int64),
        ("conditional_noise", c_double),
        ("conditional_errors", c_double),
        ("joint", c_double),
        ("joint_se", c_double),
        ("half_samples", c_int64),
        ("half_conditional", c_double),
        ("half_conditional_se", c_double),
        ("half_conditional_noise", c_double),
        ("half_joint", c_double),
        ("half_joint_se", c_double),
        ("hurried", c_int64),
    ]


class mnp_draw_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("condition", c_int),
        ("samples", c_int64),
        ("gradients", c_int64),
        ("seed", c_uint64),
        ("progress", CFUNCTYPE(None, c_void_p, c_int64, c_int64)),
        ("progress_user", c_void_p),
        ("towards", c_uint64),
        ("angle", c_double),
    ]


class mnp_draw_report(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("condition", c_int),
        ("particles", c_int64),
        ("gradients", c_int64),
        ("acceptance", c_double),
        ("particle_ess", c_double),
        ("rhat", c_double),
        ("log_evidence", c_double),
        ("log_evidence_sd", c_double),
        ("fit_before", c_double),
        ("fit_after", c_double),
        ("warnings", c_uint32),
        ("added", c_int64),
        ("log_added", c_double),
        ("moved", c_bool),
    ]


class mnp_summary(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("levels", c_int64),
        ("level", c_void_p),
        ("mean", c_void_p),
        ("sd", c_void_p),
        ("quantiles", c_void_p),
        ("draws", c_void_p),
    ]


class mnp_many_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("samples", c_int64),
        ("seed", c_uint64),
        ("base", c_int),
        ("device", c_char_p),
        ("condition", c_int),
        ("gradients", c_int64),
        ("reports", c_void_p),
    ]


class mnp_groups_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("samples", c_int64),
        ("seed", c_uint64),
        ("device", c_char_p),
        ("condition", c_int),
        ("gradients", c_int64),
        ("work_max", c_int64),
        ("smooth", c_int64),
        ("reports", c_void_p),
        ("progress", CFUNCTYPE(None, c_void_p, c_int64, c_int64)),
        ("progress_user", c_void_p),
    ]


class mnp_predictive_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("draws", c_int64),
        ("condition", c_int),
        ("gradients", c_int64),
        ("replicates", c_int64),
        ("sandwich", c_bool),
        ("particles", c_int64),
    ]


class mnp_predictive(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("context_lo", c_int64),
        ("context_hi", c_int64),
        ("functions", c_int64),
        ("targets", c_int64),
        ("marginal", c_double),
        ("marginal_se", c_double),
        ("marginal_mixture", c_double),
        ("marginal_mixture_half", c_double),
        ("marginal_true", c_double),
        ("marginal_short", c_double),
        ("marginal_short_se", c_double),
        ("crps", c_double),
        ("crps_true", c_double),
        ("kl_true", c_double),
        ("coverage50", c_double),
        ("coverage80", c_double),
        ("coverage95", c_double),
        ("pit", c_double * 10),
        ("context_off", c_double),
        ("joint_exact", c_double),
        ("joint_exact_se", c_double),
        ("joint_exact_bias", c_double),
        ("joint_true", c_double),
        ("joint_short", c_double),
        ("joint_short_se", c_double),
        ("gradients", c_double),
        ("acceptance", c_double),
        ("particle_ess", c_double),
        ("rhat", c_double),
        ("warned", c_int64),
        ("sandwich_lower", c_double),
        ("sandwich_upper", c_double),
        ("sandwich_gap", c_double),
        ("sandwich_se", c_double),
        ("joint_hurried", c_double),
    ]


class mnp_truth(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("context_lo", c_int64),
        ("context_hi", c_int64),
        ("functions", c_int64),
        ("targets", c_int64),
        ("joint", c_double),
        ("joint_se", c_double),
        ("joint_pooled", c_double),
        ("marginal", c_double),
        ("marginal_se", c_double),
        ("marginal_pooled", c_double),
        ("crps", c_double),
    ]


class mnp_option(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("type", c_int),
        ("fallback", c_char_p),
        ("choices", c_char_p),
        ("lo", c_double),
        ("hi", c_double),
        ("help", c_char_p),
    ]


class mnp_bandit_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("agent", c_char_p),
        ("agent_options", c_char_p),
        ("policy", c_char_p),
        ("width", c_double),
        ("draws", c_int64),
        ("initial_pulls", c_int64),
        ("refresh", c_int64),
        ("seed", c_uint64),
        ("delta", c_double),
        ("trials", c_int64),
        ("steps", c_int64),
        ("last", c_int64),
        ("regret", c_void_p),
        ("actions", c_void_p),
        ("progress", CFUNCTYPE(None, c_void_p, c_int64, c_int64)),
        ("progress_user", c_void_p),
        ("agent_file", c_char_p),
        ("condition", c_int),
        ("gradients", c_int64),
    ]


class mnp_bandit_scores(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("cumulative", c_double),
        ("cumulative_sd", c_double),
        ("cumulative_se", c_double),
        ("simple", c_double),
        ("simple_sd", c_double),
        ("simple_se", c_double),
        ("uniform_cumulative", c_double),
        ("uniform_simple", c_double),
        ("seconds", c_double),
        ("moved", c_double),
    ]


class mnp_agent_train_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("options", c_char_p),
        ("seed", c_uint64),
        ("progress", CFUNCTYPE(None, c_void_p, c_int64, c_int64, c_double)),
        ("progress_user", c_void_p),
    ]


class mnp_log_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("context_columns", c_char_p),
        ("action_column", c_char_p),
        ("reward_column", c_char_p),
        ("propensity_column", c_char_p),
        ("passes", c_int64),
    ]


class mnp_replay_scores(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("events", c_int64),
        ("actions", c_int64),
        ("matched", c_double),
        ("reward", c_double),
        ("se", c_double),
        ("sd", c_double),
        ("log_reward", c_double),
        ("log_se", c_double),
    ]


class mnp_laws_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("condition", c_int),
        ("functions", c_int64),
        ("samples", c_int64),
        ("gradients", c_int64),
        ("replicates", c_int64),
        ("context", c_int64),
        ("targets", c_int64),
        ("seed", c_uint64),
        ("device", c_char_p),
        ("progress", CFUNCTYPE(None, c_void_p, c_int64, c_int64)),
        ("progress_user", c_void_p),
    ]


class mnp_calibration_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("condition", c_int),
        ("functions", c_int64),
        ("draws", c_int64),
        ("context", c_int64),
        ("gradients", c_int64),
        ("seed", c_uint64),
        ("device", c_char_p),
        ("progress", CFUNCTYPE(None, c_void_p, c_int64, c_int64)),
        ("progress_user", c_void_p),
    ]


class mnp_calibration(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("functions", c_int64),
        ("draws", c_int64),
        ("context", c_int64),
        ("chance", c_double),
        ("mean", c_double),
        ("spread", c_double),
        ("acceptance", c_double),
        ("hurried", c_int64),
        ("inside95", c_bool),
        ("inside99", c_bool),
    ]


class mnp_fit_score(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("model", c_char_p),
        ("title", c_char_p),
        ("task", c_int),
        ("curves", c_int64),
        ("targets", c_int64),
        ("logp", c_double),
        ("logp_se", c_double),
        ("crps", c_double),
        ("crps_se", c_double),
        ("coverage50", c_double),
        ("coverage80", c_double),
        ("coverage95", c_double),
        ("coverage95_se", c_double),
        ("roughness", c_double),
        ("pit", c_double * 10),
        ("warned", c_int64),
    ]


class mnp_fit_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("seed", c_uint64),
        ("folds", c_int64),
        ("effort", c_double),
        ("seconds", c_double),
        ("progress", CFUNCTYPE(None, c_void_p, c_char_p, c_int64, c_int64)),
        ("scored", CFUNCTYPE(None, c_void_p, c_void_p, c_int64)),
        ("user", c_void_p),
    ]


class mnp_fit_report_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("model", c_char_p),
        ("command", c_char_p),
    ]


class mnp_job_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("timeout", c_double),
        ("fast", c_bool),
    ]


class mnp_map_frame(Structure):
    _fields_ = [
        ("rows", c_int64),
        ("cols", c_int64),
        ("lo", c_double * 2),
        ("hi", c_double * 2),
    ]


class mnp_map_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("samples", c_int64),
        ("seed", c_uint64),
        ("device", c_char_p),
        ("honour", c_void_p),
        ("range", c_double),
        ("threshold", c_double),
        ("condition", c_int),
        ("gradients", c_int64),
        ("progress", CFUNCTYPE(None, c_void_p, c_int64, c_int64)),
        ("progress_user", c_void_p),
        ("turned", c_bool),
        ("towards", c_uint64),
        ("angle", c_double),
    ]


class mnp_map(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("mean", c_void_p),
        ("sd", c_void_p),
        ("below", c_void_p),
        ("draws", c_void_p),
        ("report", c_void_p),
        ("differ", c_void_p),
    ]


class mnp_rivers_opts(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("options", c_char_p),
        ("seed", c_uint64),
        ("progress", CFUNCTYPE(None, c_void_p, c_int64, c_int64)),
        ("progress_user", c_void_p),
    ]


class mnp_plot_style(Structure):
    _fields_ = [
        ("label", c_char_p),
        ("hue", c_int),
        ("alpha", c_double),
        ("width", c_double),
        ("size", c_double),
        ("dash", c_int),
        ("marker", c_int),
        ("sideways", c_bool),
    ]


class mnp_plot_forecast(Structure):
    _fields_ = [
        ("n", c_int64),
        ("x", c_void_p),
        ("bands", c_int64),
        ("share", c_void_p),
        ("lo", c_void_p),
        ("hi", c_void_p),
        ("draws", c_int64),
        ("draw", c_void_p),
        ("mean", c_void_p),
        ("given", mnp_set),
        ("held", mnp_set),
        ("curves", c_int64),
        ("curve", c_void_p),
        ("data_lo", c_double),
        ("data_hi", c_double),
    ]


class mnp_plot_heatmap(Structure):
    _fields_ = [
        ("rows", c_int),
        ("cols", c_int),
        ("values", c_void_p),
        ("x0", c_double),
        ("x1", c_double),
        ("y0", c_double),
        ("y1", c_double),
        ("lo", c_double),
        ("hi", c_double),
        ("map", c_int),
        ("bar", c_bool),
    ]


# name: (result, arguments)
CALLS = {
    "mnp_status_name": (c_char_p, (c_int,)),
    "mnp_version": (c_char_p, ()),
    "mnp_ctx_create": (c_int, (c_void_p, c_void_p)),
    "mnp_ctx_destroy": (None, (c_void_p,)),
    "mnp_last_error": (c_char_p, (c_void_p,)),
    "mnp_data_open": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p)),
    "mnp_data_open_memory": (c_int, (c_void_p, c_char_p, c_size_t, c_void_p, c_void_p)),
    "mnp_data_path": (c_char_p, (c_char_p,)),
    "mnp_data_from_sets": (c_int, (c_void_p, c_void_p, c_int64, c_int64, c_void_p)),
    "mnp_data_destroy": (None, (c_void_p,)),
    "mnp_data_functions": (c_int64, (c_void_p,)),
    "mnp_data_points": (c_int64, (c_void_p,)),
    "mnp_data_x_dim": (c_int64, (c_void_p,)),
    "mnp_data_grid": (None, (c_void_p, c_void_p, c_void_p)),
    "mnp_data_noise": (c_double, (c_void_p,)),
    "mnp_data_seed": (c_uint64, (c_void_p,)),
    "mnp_data_name": (c_char_p, (c_void_p,)),
    "mnp_data_report": (c_char_p, (c_void_p,)),
    "mnp_data_warnings": (c_char_p, (c_void_p,)),
    "mnp_data_x_name": (c_char_p, (c_void_p, c_int64)),
    "mnp_data_y_name": (c_char_p, (c_void_p,)),
    "mnp_data_group_name": (c_char_p, (c_void_p,)),
    "mnp_data_function": (c_int, (c_void_p, c_void_p, c_int64, c_void_p, c_void_p, c_void_p)),
    "mnp_data_x_origin": (c_double, (c_void_p, c_int64)),
    "mnp_data_y_origin": (c_double, (c_void_p,)),
    "mnp_data_preset": (c_char_p, (c_void_p,)),
    "mnp_data_write_csv": (c_int, (c_void_p, c_void_p, c_char_p)),
    "mnp_data_write_npz": (c_int, (c_void_p, c_void_p, c_uint64, c_char_p)),
    "mnp_data_family": (c_char_p, (c_int, c_void_p)),
    "mnp_model_create": (
        c_int,
        (c_void_p, c_char_p, c_char_p, c_char_p, c_void_p, c_uint64, c_void_p),
    ),
    "mnp_model_create_from": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_model_extend": (c_int, (c_void_p, c_void_p, c_char_p, c_void_p, c_uint64, c_void_p)),
    "mnp_model_load": (c_int, (c_void_p, c_char_p, c_void_p)),
    "mnp_model_save": (c_int, (c_void_p, c_void_p, c_char_p)),
    "mnp_model_save_half": (c_int, (c_void_p, c_void_p, c_char_p)),
    "mnp_model_load_memory": (c_int, (c_void_p, c_void_p, c_size_t, c_void_p)),
    "mnp_model_save_memory": (c_int, (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)),
    "mnp_model_destroy": (None, (c_void_p,)),
    "mnp_model_parameters": (c_int64, (c_void_p,)),
    "mnp_model_x_dim": (c_int64, (c_void_p,)),
    "mnp_model_steps": (c_int64, (c_void_p,)),
    "mnp_model_latent": (c_int64, (c_void_p,)),
    "mnp_model_factorises": (c_bool, (c_void_p,)),
    "mnp_model_attends": (c_bool, (c_void_p,)),
    "mnp_model_options": (c_char_p, (c_void_p,)),
    "mnp_model_note": (c_char_p, (c_void_p, c_char_p)),
    "mnp_model_set_note": (c_int, (c_void_p, c_void_p, c_char_p, c_char_p)),
    "mnp_model_note_key": (c_char_p, (c_void_p, c_int)),
    "mnp_model_distance": (c_double, (c_void_p, c_int64, c_double)),
    "mnp_model_learned": (c_size_t, (c_void_p, c_void_p, c_size_t)),
    "mnp_model_range": (c_bool, (c_void_p, c_int64, c_void_p, c_void_p)),
    "mnp_model_text": (None, (c_void_p, c_int64, c_double, c_void_p, c_size_t)),
    "mnp_model_context_max": (c_int64, (c_void_p,)),
    "mnp_model_noise": (c_double, (c_void_p,)),
    "mnp_data_reopen": (c_int, (c_void_p, c_void_p, c_int, c_int64, c_char_p, c_void_p)),
    "mnp_table_open": (c_int, (c_void_p, c_void_p, c_char_p, c_bool, c_void_p, c_void_p)),
    "mnp_table_open_memory": (
        c_int,
        (c_void_p, c_void_p, c_char_p, c_char_p, c_size_t, c_bool, c_void_p, c_void_p),
    ),
    "mnp_table_open_targets": (c_int, (c_void_p, c_void_p, c_char_p, c_void_p, c_void_p, c_void_p)),
    "mnp_table_grid": (c_int, (c_void_p, c_void_p, c_char_p, c_void_p)),
    "mnp_table_spread": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_table_destroy": (None, (c_void_p,)),
    "mnp_table_rows": (c_int64, (c_void_p,)),
    "mnp_table_x": (c_void_p, (c_void_p,)),
    "mnp_table_y": (c_void_p, (c_void_p,)),
    "mnp_table_groups": (c_int64, (c_void_p,)),
    "mnp_table_group": (c_int64, (c_void_p, c_int64)),
    "mnp_table_group_name": (c_char_p, (c_void_p, c_int64)),
    "mnp_table_find": (c_int64, (c_void_p, c_char_p)),
    "mnp_table_group_rows": (c_int64, (c_void_p, c_int64)),
    "mnp_table_raw": (c_double, (c_void_p, c_int64, c_double)),
    "mnp_table_report": (c_char_p, (c_void_p,)),
    "mnp_table_warnings": (c_char_p, (c_void_p,)),
    "mnp_table_columns": (c_int64, (c_void_p,)),
    "mnp_table_column": (c_char_p, (c_void_p, c_int64)),
    "mnp_table_column_is": (c_int, (c_void_p, c_int64)),
    "mnp_table_cell": (c_char_p, (c_void_p, c_int64, c_int64)),
    "mnp_table_x_column": (c_int64, (c_void_p, c_int64)),
    "mnp_model_tensor_name": (c_char_p, (c_void_p, c_int64)),
    "mnp_model_tensor": (c_int, (c_void_p, c_void_p, c_char_p, c_void_p)),
    "mnp_model_plan": (c_size_t, (c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_size_t)),
    "mnp_trainer_create": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_trainer_destroy": (None, (c_void_p,)),
    "mnp_trainer_run": (c_int, (c_void_p, c_int64, c_void_p)),
    "mnp_trainer_report": (c_int, (c_void_p, c_void_p)),
    "mnp_trainer_save": (c_int, (c_void_p, c_char_p)),
    "mnp_trainer_resume": (c_int, (c_void_p, c_char_p, c_bool)),
    "mnp_trainer_save_best": (c_int, (c_void_p, c_char_p)),
    "mnp_trainer_save_last": (c_int, (c_void_p, c_char_p)),
    "mnp_trainer_take_best": (c_int, (c_void_p,)),
    "mnp_trainer_memory": (c_size_t, (c_void_p,)),
    "mnp_trainer_warnings": (None, (c_void_p, c_void_p, c_size_t)),
    "mnp_evaluate": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_model_set_score": (c_int, (c_void_p, c_void_p, c_int, c_void_p)),
    "mnp_model_score": (c_int, (c_void_p, c_void_p, c_int, c_void_p)),
    "mnp_score_set": (
        c_int,
        (c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_uint64, c_void_p, c_void_p),
    ),
    "mnp_score_in_turn": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_sample_in_turn": (
        c_int,
        (c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_int64, c_void_p),
    ),
    "mnp_check": (c_int, (c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_uint64, c_void_p)),
    "mnp_predictor_create": (c_int, (c_void_p, c_void_p, c_char_p, c_void_p)),
    "mnp_predictor_destroy": (None, (c_void_p,)),
    "mnp_predictor_condition": (c_int, (c_void_p, c_void_p)),
    "mnp_predictor_observe": (c_int, (c_void_p, c_void_p, c_double)),
    "mnp_predictor_reset": (None, (c_void_p,)),
    "mnp_predictor_observed": (c_int64, (c_void_p,)),
    "mnp_predictor_draw_latents": (c_int, (c_void_p, c_uint64, c_int64)),
    "mnp_predictor_draw": (c_int, (c_void_p, c_void_p, c_void_p)),
    "mnp_predictor_predict": (c_int, (c_void_p, c_void_p, c_int64, c_int, c_void_p)),
    "mnp_predictor_path": (c_int, (c_void_p, c_void_p, c_int64, c_int, c_void_p)),
    "mnp_predictor_logp": (c_int, (c_void_p, c_void_p, c_void_p)),
    "mnp_predictor_summary": (c_int, (c_void_p, c_void_p, c_int64, c_int, c_void_p)),
    "mnp_predictor_bands": (c_int, (c_void_p, c_void_p, c_int64, c_void_p)),
    "mnp_summarise": (c_int, (c_void_p, c_void_p, c_int64, c_int64, c_void_p)),
    "mnp_predict_many": (
        c_int,
        (c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_void_p),
    ),
    "mnp_predict_groups": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_table_match": (c_size_t, (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t)),
    "mnp_model_condition": (c_bool, (c_void_p, c_void_p)),
    "mnp_predictor_levels": (c_int, (c_void_p, c_void_p, c_int64, c_void_p)),
    "mnp_level": (c_double, (c_int,)),
    "mnp_evaluate_draws": (
        c_int,
        (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int64),
    ),
    "mnp_evaluate_truth": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_int64)),
    "mnp_model_process": (c_char_p, (c_int, c_void_p)),
    "mnp_model_preset": (c_char_p, (c_int, c_void_p)),
    "mnp_device": (c_char_p, (c_void_p, c_int, c_void_p, c_size_t)),
    "mnp_device_precision": (c_int, (c_void_p, c_char_p, c_void_p)),
    "mnp_options_table": (c_char_p, (c_int,)),
    "mnp_options_at": (c_bool, (c_char_p, c_int, c_void_p)),
    "mnp_options_has": (c_bool, (c_char_p, c_char_p)),
    "mnp_options_help": (c_size_t, (c_char_p, c_void_p, c_size_t)),
    "mnp_bandit_wheel": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_bandit_wheel_contexts": (
        c_int,
        (c_void_p, c_double, c_uint64, c_int64, c_int64, c_void_p),
    ),
    "mnp_bandit_agent": (c_char_p, (c_int, c_void_p)),
    "mnp_player_create": (c_int, (c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_void_p)),
    "mnp_player_destroy": (None, (c_void_p,)),
    "mnp_player_act": (c_int, (c_void_p, c_void_p, c_void_p)),
    "mnp_player_observe": (c_int, (c_void_p, c_void_p, c_int64, c_double)),
    "mnp_agent_trains": (c_bool, (c_char_p,)),
    "mnp_agent_train": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_char_p)),
    "mnp_agent_file": (c_bool, (c_void_p, c_char_p, c_void_p, c_size_t)),
    "mnp_bandit_replay": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_check_laws": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_calibrate": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_rank_band": (
        c_int,
        (c_void_p, c_int64, c_int64, c_double, c_void_p, c_void_p, c_void_p, c_void_p),
    ),
    "mnp_fit_candidate": (c_char_p, (c_int, c_void_p)),
    "mnp_fit_run": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_fit_destroy": (None, (c_void_p,)),
    "mnp_fit_rows": (c_int64, (c_void_p,)),
    "mnp_fit_row": (c_bool, (c_void_p, c_int64, c_void_p)),
    "mnp_fit_models": (c_int64, (c_void_p,)),
    "mnp_fit_name": (c_char_p, (c_void_p, c_int64)),
    "mnp_fit_model": (c_void_p, (c_void_p, c_int64)),
    "mnp_fit_best": (c_int64, (c_void_p,)),
    "mnp_fit_why": (c_char_p, (c_void_p,)),
    "mnp_fit_warnings": (c_char_p, (c_void_p,)),
    "mnp_fit_curves": (c_int64, (c_void_p,)),
    "mnp_fit_folds": (c_int64, (c_void_p,)),
    "mnp_fit_effort": (c_double, (c_void_p,)),
    "mnp_fit_path": (None, (c_void_p, c_int64, c_char_p, c_void_p, c_size_t)),
    "mnp_fit_save": (c_int, (c_void_p, c_void_p, c_char_p)),
    "mnp_fit_report": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_char_p)),
    "mnp_fit_picture": (c_int, (c_void_p, c_void_p, c_char_p)),
    "mnp_job_join": (c_int, (c_void_p, c_void_p)),
    "mnp_job_rank": (c_int, (c_void_p,)),
    "mnp_job_size": (c_int, (c_void_p,)),
    "mnp_job_leave": (None, (c_void_p,)),
    "mnp_job_suspend": (None, (c_void_p,)),
    "mnp_job_resume": (None, (c_void_p,)),
    "mnp_job_barrier": (c_int, (c_void_p,)),
    "mnp_job_broadcast": (c_int, (c_void_p, c_void_p, c_size_t)),
    "mnp_job_split": (c_int, (c_void_p, c_int64, c_int64, c_void_p, c_void_p)),
    "mnp_job_gather": (c_int, (c_void_p, c_void_p, c_int64, c_int64, c_size_t)),
    "mnp_job_heartbeat": (None, (c_void_p,)),
    "mnp_job_abort": (c_bool, (c_void_p, c_char_p)),
    "mnp_map_images": (c_bool, (c_void_p,)),
    "mnp_map_rivers": (c_bool, (c_void_p,)),
    "mnp_map_values": (c_bool, (c_void_p, c_void_p, c_void_p)),
    "mnp_map_size": (c_bool, (c_void_p, c_void_p, c_void_p)),
    "mnp_map_meaning_of": (c_int, (c_void_p, c_int64, c_void_p, c_void_p, c_size_t)),
    "mnp_map_inputs": (c_int, (c_void_p, c_void_p, c_int64, c_void_p, c_void_p)),
    "mnp_map_pixels": (c_int, (c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p)),
    "mnp_map_places": (c_int, (c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p)),
    "mnp_map_wells": (c_int, (c_void_p, c_int64, c_int64, c_int64, c_uint64, c_void_p)),
    "mnp_map_make": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "mnp_rivers_side": (c_int, (c_void_p, c_void_p, c_void_p)),
    "mnp_rivers_draw": (c_int, (c_void_p, c_int, c_int64, c_int, c_void_p, c_void_p)),
    "mnp_rivers_write": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p)),
    "mnp_rivers_read": (c_int, (c_void_p, c_char_p, c_int, c_int64, c_int64, c_void_p)),
    "mnp_plot_create": (c_int, (c_void_p, c_int, c_int, c_void_p)),
    "mnp_plot_destroy": (None, (c_void_p,)),
    "mnp_plot_title": (None, (c_void_p, c_char_p)),
    "mnp_plot_size": (None, (c_void_p, c_double, c_double)),
    "mnp_plot_share": (None, (c_void_p, c_bool, c_bool)),
    "mnp_plot_same": (None, (c_void_p, c_bool, c_bool)),
    "mnp_plot_legend_below": (None, (c_void_p, c_bool)),
    "mnp_plot_panel": (c_void_p, (c_void_p, c_int, c_int)),
    "mnp_plot_save": (c_int, (c_void_p, c_char_p)),
    "mnp_panel_title": (None, (c_void_p, c_char_p)),
    "mnp_panel_labels": (None, (c_void_p, c_char_p, c_char_p)),
    "mnp_panel_limits": (None, (c_void_p, c_int, c_double, c_double)),
    "mnp_panel_log": (None, (c_void_p, c_int)),
    "mnp_panel_dates": (None, (c_void_p, c_int, c_int)),
    "mnp_panel_names": (None, (c_void_p, c_int, c_int, c_void_p)),
    "mnp_panel_bare": (None, (c_void_p,)),
    "mnp_panel_line": (None, (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p)),
    "mnp_panel_band": (None, (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p)),
    "mnp_panel_points": (None, (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p)),
    "mnp_panel_bars": (None, (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p)),
    "mnp_panel_rule": (None, (c_void_p, c_void_p, c_int, c_double)),
    "mnp_panel_shade": (None, (c_void_p, c_void_p, c_int, c_double, c_double)),
    "mnp_panel_forecast": (None, (c_void_p, c_void_p)),
    "mnp_panel_heatmap": (None, (c_void_p, c_void_p)),
}
