# export.R: the tables of the study, as people would have them, into out/curves/data.
#   Rscript lab/curves/export.R [OUT] [PYTHON]     (packages: nlme, lme4; statsmodels for elnino)
# R's tables are not ours to distribute: they stay in out/, which git ignores.
args <- commandArgs(trailingOnly = TRUE)
out <- if (length(args) > 0) args[1] else "out/curves/data"
python <- if (length(args) > 1) args[2] else "python3"
dir.create(out, recursive = TRUE, showWarnings = FALSE)

write_table <- function(table, name)
    write.csv(table, file.path(out, paste0(name, ".csv")), row.names = FALSE, quote = FALSE)

# A grouped table of nlme is an ordinary one underneath; its ordered groups are plain words.
plain <- function(table) {
    table <- as.data.frame(table)
    for (column in names(table))
        if (is.factor(table[[column]])) table[[column]] <- as.character(table[[column]])
    table
}

for (name in c("Theoph", "ChickWeight", "Loblolly", "CO2", "Orange", "Indometh"))
    write_table(plain(get(name, asNamespace("datasets"))), name)
for (name in c("BodyWeight", "Glucose", "Wafer", "Milk")) {
    data(list = name, package = "nlme")
    write_table(plain(get(name)), name)
}
data(list = "sleepstudy", package = "lme4")
write_table(plain(sleepstudy), "sleepstudy")

# 400 curves that are neither Gaussian nor linear: a rise at a random time to a lognormal height;
# half of the curves fall again after a while, the others stay; noise with heavy tails that grows
# with the level.
set.seed(400)
curves <- lapply(1:400, function(i) {
    t <- sort(seq(0, 23) + runif(24, 0, 0.9))
    height <- exp(rnorm(1, log(4), 0.4))
    onset <- 2 + rgamma(1, 4, 0.8)
    width <- exp(rnorm(1, log(0.7), 0.4))
    level <- height * plogis((t - onset) / width)
    if (runif(1) < 0.5) {
        start <- onset + 2 + rexp(1, 0.4)
        level <- level * exp(-rgamma(1, 4, 16) * pmax(0, t - start))
    }
    data.frame(curve = i, hour = round(t, 3),
               signal = round(level + (0.04 + 0.04 * level) * rt(24, 4), 4))
})
write_table(do.call(rbind, curves), "bistable")

# Sea surface temperatures off Peru, one curve a year (statsmodels has the table).
elnino <- paste("import sys, statsmodels.api as sm",
                "d = sm.datasets.elnino.load_pandas().data",
                "d.columns = ['year'] + list(range(1, 13))",
                "d = d.melt('year', var_name='month', value_name='temperature')",
                "d['year'] = d.year.astype(int)",
                "d.sort_values(['year', 'month']).to_csv(sys.argv[1], index=False)", sep = "\n")
status <- system2(python, c("-c", shQuote(elnino), shQuote(file.path(out, "elnino.csv"))))
if (status != 0) stop("elnino needs ", python, " with statsmodels and pandas")
