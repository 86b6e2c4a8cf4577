"""The perturbed objective functions of diffprivlib, its transforms, and models that are fitted to rows with labels."""

from __future__ import annotations

import warnings

import diffprivlib
import numpy as np
from diffprivlib.mechanisms import transforms
from scipy import optimize

warnings.simplefilter("ignore")
m, models = diffprivlib.mechanisms, diffprivlib.models

rounded_integer = transforms.RoundedInteger(m.Laplace(epsilon=1.0, sensitivity=1.0)).randomise
string_to_int = transforms.StringToInt(m.Geometric(epsilon=1.0, sensitivity=1)).randomise
int_to_string = transforms.IntToString(m.Binary(epsilon=1.0, value0="0", value1="1")).randomise


def perturbed(rows):
    """Return the function that Vector returns for the mean of logistic losses of signed numbers between -1 and 1."""
    signed = np.asarray(rows, dtype=float)
    mechanism = m.Vector(epsilon=1.0, function_sensitivity=0.25, dimension=1, alpha=1.0, n=len(signed))

    def objective(weight):
        losses = np.logaddexp(0.0, -signed * weight[0])
        slopes = -signed / (1.0 + np.exp(signed * weight[0]))
        return losses.mean() + 0.5 / len(signed) * weight[0] ** 2, np.array([slopes.mean()]) + weight / len(signed)

    return mechanism.randomise(objective)


def vector_gradient(rows):
    """Release the gradient of a perturbed function at one point."""
    return float(perturbed(rows)(np.zeros(1))[1][0])


def vector_gradients(rows):
    """Release the gradient of a perturbed function at two points."""
    function = perturbed(rows)
    return np.array([function(np.array([point]))[1][0] for point in (0.0, 1.0)])


def vector_minimum(rows):
    """Release where a perturbed function is smallest."""
    function = perturbed(rows)
    return optimize.brentq(lambda weight: float(function(np.array([weight]))[1][0]), -1e4, 1e4)


def logistic(rows, norm, fit_intercept):
    """Release the coefficients of a logistic regression; the last column holds the labels."""
    table = np.asarray(rows, dtype=float)
    accountant = diffprivlib.BudgetAccountant()
    model = models.LogisticRegression(
        epsilon=1.0, data_norm=norm, tol=1e-8, fit_intercept=fit_intercept, accountant=accountant
    ).fit(table[:, :-1], table[:, -1])
    return np.concatenate([np.ravel(model.coef_), model.intercept_] if fit_intercept else [np.ravel(model.coef_)])


def logistic_regression(rows):
    return logistic(rows, 1.0, fit_intercept=False)


def logistic_regression_of_hundreds(rows):
    return logistic(rows, 100.0, fit_intercept=False)


def logistic_regression_with_intercept(rows):
    return logistic(rows, 1.0, fit_intercept=True)


def bayes(rows, bounds):
    """Release sizes, means and variances of the classes; the last column holds the labels."""
    table = np.asarray(rows, dtype=float)
    model = models.GaussianNB(epsilon=1.0, bounds=bounds, accountant=diffprivlib.BudgetAccountant())
    model.fit(table[:, :-1], table[:, -1])
    return np.concatenate([model.class_count_, np.ravel(model.theta_), np.ravel(model.var_)])


def naive_bayes(rows):
    return bayes(rows, (0.0, 1.0))


def naive_bayes_of_tens(rows):
    return bayes(rows, (10.0, 11.0))


def linear(rows, lowest):
    """Release the coefficient of a regression on numbers up to 1; the last column holds the targets."""
    table = np.asarray(rows, dtype=float)
    accountant = diffprivlib.BudgetAccountant()
    model = models.LinearRegression(
        epsilon=1.0, bounds_X=(lowest, 1.0), bounds_y=(-1.0, 1.0), fit_intercept=False, accountant=accountant
    )
    return float(np.ravel(model.fit(table[:, :-1], table[:, -1]).coef_)[0])


def linear_regression(rows):
    return linear(rows, -1.0)


def linear_regression_of_positive(rows):
    return linear(rows, 0.0)


def components(rows):
    """Release the variances and the first axis of centred rows of norm at most 1."""
    accountant = diffprivlib.BudgetAccountant()
    model = models.PCA(n_components=1, epsilon=1.0, data_norm=1.0, centered=True, accountant=accountant)
    model.fit(np.asarray(rows, dtype=float))
    return np.array([model.explained_variance_[0], model.noise_variance_, *model.components_[0]])


def forest(kind, rows, **arguments):
    """Release what a forest predicts at three points; the last column holds the labels."""
    table = np.asarray(rows, dtype=float)
    model = kind(
        epsilon=1.0,
        bounds=(0.0, 1.0),
        classes=[0, 1],
        max_depth=1,
        accountant=diffprivlib.BudgetAccountant(),
        **arguments,
    )
    model.fit(table[:, :-1], table[:, -1].astype(int))
    return model.predict(np.array([[0.1], [0.5], [0.9]])).astype(int)


def decision_tree(rows):
    return forest(models.DecisionTreeClassifier, rows)


def random_forest(rows):
    return forest(models.RandomForestClassifier, rows, n_estimators=2, shuffle=True)
