# Logistic regression on a hidden answer with R's glm or svyglm: a link for a raw column of `ldp-budget contributions --raw`.
# A report says 1 with chance p if the answer is held, and with chance q if not.
hidden_answer <- function(p, q) structure(list(
  linkfun = function(mu) qlogis(pmin(pmax((mu - q) / (p - q), 1e-9), 1 - 1e-9)),
  linkinv = function(eta) q + (p - q) * plogis(eta),
  mu.eta = function(eta) (p - q) * dlogis(eta),
  valideta = function(eta) TRUE, name = "hidden answer"), class = "link-glm")
