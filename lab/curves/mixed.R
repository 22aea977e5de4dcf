# mixed.R: the study's mixed models, by lme4 and nlme, independent of mnp.
#   Rscript lab/curves/mixed.R SET [OUT]     (OUT: out/curves; reads OUT/sets, writes OUT/baseline)
#
#   lmer    natural splines of x for the population and for the curves' own parts, both sizes by AIC
#   offset  the population's spline and an offset for each curve (nlme)
#
# Files: SET.METHOD.csv with row,task,mean,sd of each point asked for, and SET.METHOD.rough.csv with
# curve,task,rough,noise: how rough curves without noise are between measurements.
suppressMessages({ library(lme4); library(nlme); library(splines) })
args <- commandArgs(trailingOnly = TRUE)
set <- args[1]
out <- if (length(args) > 1) args[2] else "out/curves"
table <- read.csv(file.path(out, "sets", paste0(set, ".csv")), colClasses = c(curve = "character"))
covariates <- setdiff(names(table), c("row", "curve", "x", "y", "fold", "F3", "R3"))
for (c in covariates)
    if (!is.numeric(table[[c]]) || length(unique(table[[c]])) <= 4) table[[c]] <- factor(table[[c]])

# ns() with knots at quantiles of the training times; df 0 is a constant.
basis <- function(x, df) if (df == 0) NULL else ns(x, df = df)
columns <- function(b, x) cbind(rep(1, length(x)), if (!is.null(b)) predict(b, x))

# What the population depends on besides x: added, or with a curve of its own for each category.
fixed_forms <- function() {
    forms <- list(character(0))
    if (length(covariates) == 0) return(forms)
    list(character(0), covariates, c(covariates, paste0("X:", covariates)))
}

formula_of <- function(form, df, random) {
    terms <- if (df == 0) "1" else "X"
    if (df == 0) form <- form[!grepl("X:", form)]
    fixed <- paste(c(terms, form), collapse = " + ")
    list(fixed = as.formula(paste("y ~", fixed)),
         whole = as.formula(paste("y ~", fixed, "+", random)))
}

# Curves with as few points as columns, and variances at zero, are no errors here.
quiet <- lmerControl(calc.derivs = FALSE, check.nobs.vs.nRE = "ignore",
                     check.nobs.vs.nlev = "ignore", check.conv.singular = "ignore")

fit_lmer <- function(d, form, df, rdf) {
    b <- basis(d$x, df); r <- basis(d$x, rdf)
    if (!is.null(b)) d$X <- unclass(predict(b, d$x))
    if (!is.null(r)) d$Z <- unclass(predict(r, d$x))
    f <- formula_of(form, df, if (rdf == 0) "(1 | curve)" else "(1 + Z | curve)")
    list(model = suppressMessages(suppressWarnings(
             lmer(f$whole, d, REML = FALSE, control = quiet))), b = b, r = r, f = f)
}

fit_lme <- function(d, form, df) {
    b <- basis(d$x, df)
    if (!is.null(b)) d$X <- unclass(predict(b, d$x))
    f <- formula_of(form, df, "1")
    model <- do.call(lme, list(f$fixed, data = d, random = ~ 1 | curve, method = "ML",
                               control = lmeControl(returnObject = TRUE)))
    list(model = model, b = b, r = NULL, f = f)
}

# The best by AIC: sizes rise until two in a row are no better.
search <- function(d, fit, random) {
    best <- NULL; best_aic <- Inf
    values <- length(unique(d$x))
    per_curve <- max(table(d$curve))
    for (form in fixed_forms()) {
        idle_r <- 0
        for (rdf in random) {
            if (rdf + 1 > min(values, per_curve) || idle_r > 1) break
            here <- Inf; idle <- 0
            for (df in c(1, 2, 3, 4, 5, 6, 8, 10)) {
                if (df + 1 > values || idle > 1) break
                m <- try(fit(d, form, df, rdf), silent = TRUE)
                aic <- if (inherits(m, "try-error")) Inf else AIC(m$model)
                idle <- if (aic < here) 0 else idle + 1
                here <- min(here, aic)
                if (aic < best_aic) { best_aic <- aic; best <- list(form = form, df = df, rdf = rdf) }
            }
            idle_r <- if (here <= best_aic) 0 else idle_r + 1
        }
    }
    best
}

# beta, its covariance, Psi and sigma by REML.
parameters <- function(d, how, best) {
    if (how == "lmer") {
        m <- fit_lmer(d, best$form, best$df, best$rdf)
        if (!is.null(m$b)) d$X <- unclass(predict(m$b, d$x))
        if (!is.null(m$r)) d$Z <- unclass(predict(m$r, d$x))
        r <- suppressMessages(suppressWarnings(
            lmer(m$f$whole, d, REML = TRUE, control = quiet)))
        list(beta = fixef(r), cov = as.matrix(vcov(r)), psi = as.matrix(VarCorr(r)$curve)[, ],
             sigma = sigma(r), b = m$b, r = m$r, f = m$f$fixed)
    } else {
        m <- fit_lme(d, best$form, best$df)
        if (!is.null(m$b)) d$X <- unclass(predict(m$b, d$x))
        r <- do.call(lme, list(m$f$fixed, data = d, random = ~ 1 | curve, method = "REML",
                               control = lmeControl(returnObject = TRUE)))
        list(beta = fixef(r), cov = vcov(r), psi = matrix(as.numeric(getVarCov(r))),
             sigma = r$sigma, b = m$b, r = NULL, f = m$f$fixed)
    }
}

rows <- function(p, d) {
    if (!is.null(p$b)) d$X <- unclass(predict(p$b, d$x))
    d$y <- 0
    list(x = model.matrix(p$f, d), z = columns(p$r, d$x))
}

# The joint normal law of the points `asked` of a curve given others: mean and covariance, no noise.
given <- function(p, seen, asked) {
    a <- rows(p, asked); s <- rows(p, seen)
    psi <- as.matrix(p$psi)
    cross <- function(u, v) u$x %*% p$cov %*% t(v$x) + u$z %*% psi %*% t(v$z)
    k <- solve(cross(s, s) + p$sigma^2 * diag(nrow(seen)), cross(s, a))
    list(mean = as.vector(a$x %*% p$beta + t(k) %*% (seen$y - s$x %*% p$beta)),
         cov = cross(a, a) - t(k) %*% cross(s, a))
}

# Ten places in each gap between neighbouring times; the mean of |second difference| in closed form.
roughness <- function(p, seen, curve) {
    t <- sort(unique(curve$x))
    total <- 0; count <- 0
    for (i in seq_len(length(t) - 1)) {
        places <- curve[rep(1, 10), ]
        places$x <- t[i] + (t[i + 1] - t[i]) * (1:10 - 0.5) / 10
        law <- given(p, seen, places)
        d <- diff(diag(10), differences = 2)
        m <- d %*% law$mean
        s <- sqrt(pmax(diag(d %*% law$cov %*% t(d)), 1e-300))
        total <- total + sum(s * sqrt(2 / pi) * exp(-m^2 / (2 * s^2)) + m * (1 - 2 * pnorm(-m / s)))
        count <- count + 8
    }
    total / count
}

run <- function(how) {
    points <- list(); rough <- list()
    for (fold in sort(unique(table$fold[table$fold >= 0]))) {
        train <- table[table$fold != fold, ]
        best <- if (how == "lmer") search(train, fit_lmer, 0:5) else
            search(train, function(d, form, df, rdf) fit_lme(d, form, df), 0)
        p <- parameters(train, how, best)
        cat(sprintf("%s %s fold %d: df %d, random %d, %s\n", set, how, fold, best$df, best$rdf,
                    paste(best$form, collapse = " + ")))
        for (task in c("F3", "R3")) for (name in unique(table$curve[table$fold == fold])) {
            curve <- table[table$curve == name, ]
            seen <- curve[curve[[task]] == 1, ]; asked <- curve[curve[[task]] == 0, ]
            law <- given(p, seen, asked)
            points[[length(points) + 1]] <- data.frame(row = asked$row, task = task,
                mean = law$mean, sd = sqrt(pmax(diag(law$cov), 0) + p$sigma^2))
            rough[[length(rough) + 1]] <- data.frame(curve = name, task = task,
                rough = roughness(p, seen, curve), noise = p$sigma)
        }
    }
    dir.create(file.path(out, "baseline"), showWarnings = FALSE)
    save <- function(d, end) write.csv(do.call(rbind, d), row.names = FALSE, quote = FALSE,
        file.path(out, "baseline", paste0(set, ".", how, end, ".csv")))
    save(points, ""); save(rough, ".rough")
}
run("lmer")
run("offset")
