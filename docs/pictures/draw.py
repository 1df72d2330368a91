"""Draw the pictures of the documentation: `make pictures`. Numbers come from plans and from benchmarks/results."""

import sys
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from scipy.special import ndtr

import voxpop as vp

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from tools.palette import palette  # noqa: E402

RESULTS = HERE.parent.parent / "benchmarks" / "results"
OURS, THEIRS, ACCENT = (palette()[name] for name in ("bar", "third", "second"))
OTHER, INK, PALE = "#c9d1d9", "#22303c", "#eef3f7"
DEFAULT = "default"
SHADES = ["#9cc3dd", "#5f9dc4", OURS, "#0c3552"]
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#8794a1",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "svg.hashsalt": "voxpop",
}

# The number of users of each word among eighty made-up users with four words each.
HOLDERS = {"thank": 60, "you": 58, "see": 46, "tomorrow": 38, "soon": 27, "hello": 12, "badge": 2, "4711": 1}
SAYINGS = [("ann", "thank you, see you tomorrow"), ("bob", "hello, see you soon"), ("eve", "my badge is 4711")]


def lines_of(name: str) -> list[list[str]]:
    """Return the lines of a table of results, its head first."""
    lines = [line for line in (RESULTS / f"{name}.md").read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def results(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of results by the names of its head."""
    head, *rows = lines_of(name)
    return [dict(zip(head, row, strict=True)) for row in rows]


def number(text: str) -> float:
    """Return a number as tables write it."""
    return float(text.split("±")[0].split("(")[-1].replace(",", "").strip(" %)"))


def overview() -> plt.Figure:
    """Draw the input, the decision and the output of a release."""
    plan = vp.papers.SetUnion(4, "weighted", accounting="joint").plan(vp.Budget(epsilon=4, delta=1e-7))
    share = 0.5  # one of four items: 1/sqrt(4) each
    chances = {word: float(ndtr((holders * share - plan.threshold) / plan.sigma)) for word, holders in HOLDERS.items()}
    figure = plt.figure(figsize=(10.5, 3.7))
    figure.subplots_adjust(0.01, 0.02, 0.99, 0.98)
    page = figure.add_axes((0, 0, 1, 1))
    page.set(xlim=(0, 10.5), ylim=(0, 3.7))
    page.axis("off")
    soft = {"size": 9, "color": "#5b6874"}
    page.text(0.25, 3.38, "1. Texts of 80 users", weight="bold", size=11)
    page.text(0.25, 3.14, "private", **soft)
    for place, (who, saying) in enumerate(SAYINGS):
        card(page, 0.25, 2.28 - 0.78 * place, 2.45, 0.64)
        page.text(0.39, 2.69 - 0.78 * place, who, size=8.5, color="#5b6874")
        page.text(0.39, 2.43 - 0.78 * place, saying, size=9.5)
    page.text(1.47, 0.44, "… and 77 others", ha="center", **soft)
    arrow = {"arrowstyle": "-|>", "mutation_scale": 16, "color": INK, "lw": 1.6}
    page.add_patch(FancyArrowPatch((2.78, 1.75), (3.18, 1.75), **arrow))
    page.text(3.35, 3.38, "2. Users of each word, with noise", weight="bold", size=11)
    page.text(3.35, 3.14, "the threshold is set before any text is read", **soft)
    bars(figure.add_axes((0.385, 0.13, 0.375, 0.69)), chances, plan.threshold / share, plan.sigma / share)
    page.add_patch(FancyArrowPatch((8.08, 1.75), (8.48, 1.75), **arrow))
    page.text(8.6, 3.38, "3. Released words", weight="bold", size=11)
    page.text(8.6, 3.14, "public, without numbers", **soft)
    released = [word for word, chance in chances.items() if chance > 0.5]
    card(page, 8.6, 0.62, 1.65, 2.3, OURS)
    for place, word in enumerate(sorted(released)):
        page.text(9.42, 2.42 - 0.36 * place, word, size=10.5, color="white", ha="center", weight="bold")
    page.text(9.42, 0.36, str(plan.guarantee).split(", one")[0], size=9, ha="center", color=INK)
    return figure


def card(page: Axes, x: float, y: float, width: float, height: float, color: str = PALE) -> None:
    """Draw a box with round corners."""
    style = "round,pad=0,rounding_size=0.09"
    page.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=color, edgecolor="#c5d0d9", lw=0.8))


def bars(plot: Axes, chances: dict[str, float], threshold: float, noise: float) -> None:
    """Draw the users of words with the spread of the noise, and the threshold."""
    words = list(HOLDERS)[::-1]
    colors = [OURS if chances[word] > 0.5 else OTHER for word in words]
    spread = {"ecolor": ACCENT, "lw": 1.6, "capsize": 3}
    plot.barh(words, [HOLDERS[word] for word in words], color=colors, height=0.62, xerr=noise, error_kw=spread)
    plot.axvline(threshold, color=ACCENT, ls=(0, (4, 2.5)), lw=2)
    plot.text(threshold + 1.5, 1.2, "threshold", color=ACCENT, size=9.5, va="center")
    plot.text(threshold + 1.5, 0.2, "left of it: not released", color="#5b6874", size=9, va="center")
    plot.set_xlabel("users who wrote the word, and the spread of the noise", size=8.5)
    plot.tick_params(axis="y", length=0)
    plot.spines["left"].set_visible(False)


def phrases() -> plt.Figure:
    """Draw the phrases released from three collections by the published algorithm and by Voxpop."""
    names = {
        "reddit_posts": "500,000 posts,\nlength 1 to 9",
        "ubuntu_irc": "chat of 17,000 users,\nlength 1 to 9",
        "MSNBC": "a million visits,\nlength 1 to 6",
    }
    colors = [OTHER, THEIRS, OURS]
    labels = ["published algorithm", "published, at its best budgets and limit", "Voxpop's default"]
    figure, plots = plt.subplots(1, 3, figsize=(9.2, 3.1), constrained_layout=True)
    for plot, (name, title) in zip(plots, names.items(), strict=True):
        rows = results(f"lengths_{name}")
        equal, _, best, *_, default = takewhile(lambda row: not row["n-grams"].startswith("missing mass"), rows)
        values = [number(row["total"].split()[0]) for row in (equal, best, default)]
        made = plot.bar(range(3), values, color=colors, width=0.72, label=labels)
        plot.bar_label(made, [f"{value:,.0f}" for value in values], size=9, padding=2)
        plot.set_title(title, fontsize=10, weight="normal", loc="center")
        plot.set_xticks([])
        plot.set_yticks([])
        plot.spines["left"].set_visible(False)
        plot.margins(y=0.12)
    handles = [mpl.patches.Patch(color=color, label=label) for color, label in zip(colors, labels, strict=True)]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9.5)
    return figure


def users_needed() -> plt.Figure:
    """Draw the probability that an item is released, against the number of its users."""
    figure, plot = plt.subplots(figsize=(7.4, 3.6), constrained_layout=True)
    chances = ndtr(np.linspace(-3.5, 3.2, 600))  # dense enough for a value near each number of users
    for epsilon, color in zip((8, 4, 2, 1), SHADES[::-1], strict=True):
        plan = vp.Items(max_items_per_user=100).plan(vp.Budget(epsilon, 1e-7))
        # Numbers of users are integers: of equal numbers, the largest probability is drawn.
        reached = {plan.users_needed(float(chance), per_user=10): chance for chance in chances}
        plot.plot(list(reached), list(reached.values()), color=color, lw=2.4, label=f"epsilon {epsilon}")
    plot.set(
        xlabel="users who have the item and nine others, none more common",
        ylabel="probability of release",
        xlim=(0, 140),
    )
    plot.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "¼", "½", "¾", "1"])
    plot.grid(axis="y", alpha=0.25)
    plot.legend(loc="lower right", fontsize=9.5)
    return figure


def by_epsilon() -> plt.Figure:
    """Draw the released phrases by epsilon."""
    found = [row for row in results("dpne_figures") if row["figure"] == "epsilon"]
    figure, plot = plt.subplots(figsize=(7.4, 3.4), constrained_layout=True)
    for algorithm, label, color in (
        ("ours", "Voxpop", OURS),
        ("published", "published algorithm", THEIRS),
    ):
        rows = [row for row in found if row["algorithm"] == algorithm]
        x, y = [number(row["setting"]) for row in rows], [number(row["total"]) for row in rows]
        plot.plot(x, y, "o-", color=color, lw=2.4, label=label)
        for at, value in zip(x, y, strict=True):
            plot.annotate(f"{value:,.0f}", (at, value), (0, 7), textcoords="offset points", ha="right", size=8.5)
    plot.set(xlabel="epsilon", ylabel="phrases of 1 to 9 words", xscale="log", ylim=(0, 360_000))
    plot.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    plot.set_yticks([0, 100_000, 200_000, 300_000], ["0", "100,000", "200,000", "300,000"])
    plot.minorticks_off()
    plot.grid(axis="y", alpha=0.25)
    plot.legend(loc="upper left", fontsize=9.5)
    return figure


def speed() -> plt.Figure:
    """Draw the seconds to turn half a million texts into numbers."""
    rows = results("speed_text")[:3]
    labels = ["Voxpop, saved to disk", "polars expressions", "scikit-learn CountVectorizer"]
    return lying_bars(labels, [number(row["seconds"]) for row in rows], "{:.2f} s", "seconds for 25.3 million words")


def weightings() -> plt.Figure:
    """Draw the released words by weighting and noise."""
    names = {
        "Count Laplace": "count, Laplace",
        "Weighted Laplace": "weighted, Laplace",
        "Count Gaussian": "count, Gaussian",
        "Weighted Gaussian, joint": "weighted, Gaussian",
        "Policy Laplace (l1-descent)": "l1-descent, Laplace, alpha 3",
        "Policy Gaussian l2, joint, alpha 5": "l2-descent, Gaussian",
        DEFAULT: "adaptive rounds (default)",
    }
    found = {row["limit"]: number(row["100"]) for row in results("dpsu_table2")}
    found[DEFAULT] = default_words()
    return lying_bars(
        list(names.values())[::-1],
        [found[n] for n in names][::-1],
        "{:,.0f}",
        "words released from 500,000 posts, limit 100",
    )


def default_words() -> float:
    """Return the number of words that the default releases from the same posts, at the same budget and limit."""
    rows = lines_of("set_union_field")
    limits = next(row for row in rows if row[0] == "items released at (3, e^-10)")
    return number(next(row for row in rows if row[0] == DEFAULT)[limits.index("limit 100")])


def limits() -> plt.Figure:
    """Draw words by limit and budget: the default, the best classic weighting, and GW made private by the limit."""
    names, *rows = lines_of("set_union_limits")
    axis = [name.removeprefix("limit ").removesuffix(" limit") for name in names[1:]]
    figure, plots = plt.subplots(1, 3, figsize=(9.6, 3.4), constrained_layout=True)
    starts = [place for place, row in enumerate(rows) if row[0].startswith("words released")]
    for plot, start in zip(plots, starts, strict=True):
        released = takewhile(lambda row: not row[0].startswith(("words released", "missing mass")), rows[start + 1 :])
        lines = {name: [np.nan if each == "–" else number(each) for each in line] for name, *line in released}
        strangers = (DEFAULT, "GW", "default, over")
        others = np.nanmax([line for name, line in lines.items() if not name.startswith(strangers)], axis=0)
        plot.plot(
            axis, lines["GW, made sound by the limit"], "o--", color=OTHER, lw=2, label="GW, made sound by the limit"
        )
        plot.plot(axis, others, "o-", color=THEIRS, lw=2.4, label="best of our classic weightings")
        plot.plot(axis, lines[DEFAULT], "o-", color=OURS, lw=2.8, label="the default")
        plot.annotate(
            f"{lines[DEFAULT][5]:,.0f}", (5, lines[DEFAULT][5]), (0, 7), textcoords="offset points", ha="center"
        )
        plot.set_title(rows[start][0].removeprefix("words released at "))
        plot.set(xlabel="limit", ylim=(0, 1.14 * max(lines[DEFAULT])))
        plot.tick_params(axis="x", labelsize=8.5)
        plot.grid(axis="y", alpha=0.25)
    plots[0].set_ylabel("words released from 500,000 posts")
    plots[0].legend(loc="lower right", fontsize=8.5)
    return figure


def lying_bars(labels: list[str], values: list[float], form: str, caption: str) -> plt.Figure:
    """Draw horizontal bars, the first of them for Voxpop."""
    figure, plot = plt.subplots(figsize=(7.4, 0.42 * len(labels) + 0.75), constrained_layout=True)
    made = plot.barh(labels[::-1], values[::-1], color=[THEIRS] * (len(labels) - 1) + [OURS], height=0.66)
    plot.bar_label(made, [form.format(value) for value in values[::-1]], padding=4, size=9.5)
    plot.set_xlabel(caption)
    plot.set_xticks([])
    plot.margins(x=0.12)
    plot.tick_params(axis="y", length=0)
    plot.spines[["left", "bottom"]].set_visible(False)
    return figure


def coverage() -> plt.Figure:
    """Draw the released share of the words that at least k users wrote."""
    rows = results("dpsu_table3")
    k = [number(row["k"]) for row in rows]
    columns = list(rows[0])[2:]
    figure, plot = plt.subplots(figsize=(7.4, 3.3), constrained_layout=True)
    labels = ["l1-descent, Laplace", "l2-descent, published accounting", "l2-descent, joint accounting"]
    for column, label, color in zip(columns, labels, (OTHER, THEIRS, OURS), strict=True):
        plot.plot(k, [number(row[column]) for row in rows], "o-", color=color, lw=2.4, label=label)
    plot.set(xlabel="k: words that at least k users wrote", ylabel="of these released, %", ylim=(0, 100))
    plot.set_xticks(range(5, 26, 5))
    plot.grid(axis="y", alpha=0.25)
    plot.legend(loc="lower right", fontsize=9.5)
    return figure


def hitters() -> plt.Figure:
    """Draw the users that a word needs: published and exact accounting, the default, and the optimum."""
    rows = results("triehh_holders")
    plans = {
        "published accounting": (OTHER, holders_of(rows, "published, Bernoulli")),
        "exact accounting, one vote": (THEIRS, holders_of(rows, "exact, one word")),
        "several votes (the default)": (OURS, holders_of(rows, "several votes (the default)")),
        "one party that sees every word": (ACCENT, central_optimum()),
    }
    figure, plot = plt.subplots(figsize=(7.4, 3.4), constrained_layout=True)
    for place, (label, (color, values)) in enumerate(plans.items()):
        x = np.arange(3) + 0.13 * (place - 1.5)
        plot.plot(x, values, "o", color=color, ms=9, label=label)
        for at, value in zip(x, values, strict=True):
            plot.annotate(f"{value:,.0f}", (at, value), (0, 7), textcoords="offset points", ha="center", size=9)
    plot.set(yscale="log", ylim=(4, 5000), xlim=(-0.5, 2.5), ylabel="users a word needs")
    plot.minorticks_off()
    plot.set_xticks(range(3), ["epsilon 1", "epsilon 2", "epsilon 4"])
    plot.set_yticks([10, 100, 1000], ["10", "100", "1,000"])
    plot.grid(axis="y", alpha=0.25)
    plot.tick_params(axis="x", length=0)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9.5)
    return figure


def holders_of(rows: list[dict[str, str]], plan: str) -> list[float]:
    """Return the number of users that a word needs with a plan, by epsilon."""
    return [number(row["holders"]) for row in rows if row["plan"] == plan]


def central_optimum() -> list[float]:
    """Return the number of users needed by the best mechanism if one party sees every word, by epsilon."""
    return [
        float(each) for each in {row["epsilon"]: row["central optimum"] for row in results("triehh_rounds")}.values()
    ]


def synthetic() -> plt.Figure:
    """Draw synthetic and real visits: pages, transitions, lengths, paths, and the result of the classifier."""
    shown = results("synthetic_sessions_shown")
    figure, plots = plt.subplots(2, 3, figsize=(10.2, 6.4), constrained_layout=True)
    beside(plots[0, 0], shown, "symbols", "share of a page")
    beside(plots[0, 1], shown, "transitions", "share of a step from page to page")
    lengths(plots[0, 2], shown)
    common_paths(plots[1, 0], shown)
    battery = results("synthetic_sessions")
    by_model(plots[1, 1], battery, "classifier", "classifier: 0.5 is a guess", 0.5)
    by_model(plots[1, 2], battery, "lengths", "distance of lengths", 0.0)
    handles, labels = plots[1, 2].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower right", ncols=5, fontsize=8.5)
    return figure


def beside(plot: Axes, shown: list[dict[str, str]], kind: str, title: str) -> None:
    """Draw synthetic against real shares, with the line of equal shares, on logarithmic axes from 1e-5 on."""
    pairs = [(float(row["real"]), float(row["synthetic"])) for row in shown if row["kind"] == kind]
    least = max(1e-5, min(min(pair) for pair in pairs) / 2)
    most = 2 * max(max(pair) for pair in pairs)
    plot.plot([least, most], [least, most], color=OTHER, lw=1)
    plot.scatter(*np.array(pairs).T, s=14, color=OURS, alpha=0.75, linewidths=0)
    plot.set(xscale="log", yscale="log", xlim=(least, most), ylim=(least, most), xlabel="real", ylabel="synthetic")
    plot.set_title(title, fontsize=10)


def lengths(plot: Axes, shown: list[dict[str, str]]) -> None:
    """Draw the lengths of visits."""
    rows = [row for row in shown if row["kind"] == "lengths"]
    x = [int(row["name"]) for row in rows]
    for column, color in (("real", THEIRS), ("synthetic", OURS)):
        plot.plot(x, [float(row[column]) for row in rows], "o-", ms=4, color=color, lw=2, label=column)
    plot.set(yscale="log", xlabel="pages of a visit; 20 and more are 20")
    plot.set_title("share of visits", fontsize=10)
    plot.legend(fontsize=8.5)


def common_paths(plot: Axes, shown: list[dict[str, str]]) -> None:
    """Draw the most frequent paths of three pages."""
    rows = [row for row in shown if row["kind"] == "paths"][::-1]
    y = np.arange(len(rows))
    for place, (column, color) in enumerate((("synthetic", OURS), ("real", THEIRS))):
        plot.barh(y + 0.38 * (place - 0.5), [float(row[column]) for row in rows], 0.36, color=color, label=column)
    plot.set_yticks(y, [row["name"].replace(" ", " → ") for row in rows], fontsize=8)
    plot.tick_params(axis="y", length=0)
    plot.set_xlabel("share of visits that contain it")
    plot.set_title("commonest paths, pages by number", fontsize=10)
    plot.legend(fontsize=8.5, loc="lower right")


def by_model(plot: Axes, battery: list[dict[str, str]], figure: str, title: str, least: float) -> None:
    """Draw a figure of the battery by epsilon."""
    colors = {DEFAULT: OURS, "fixed 3-grams": SHADES[0], "fixed 2-grams": THEIRS, "published": ACCENT}
    for model, color in colors.items():
        rows = [row for row in battery if row["model"] == model]
        x, y = [row["epsilon"] for row in rows], [number(row[figure]) for row in rows]
        plot.plot(x, y, "o-", color=color, lw=2, ms=5, label=model)
    [real] = [number(row[figure]) for row in battery if row["epsilon"] == "-"]
    plot.axhline(real, color=INK, lw=1, ls=(0, (2, 2)), label="two halves of the real ones")
    plot.set(xlabel="epsilon")
    plot.set_ylim(bottom=least - 0.003)
    plot.set_title(title, fontsize=10)


def series() -> plt.Figure:
    """Draw the words by night of a series, by the division of the budget."""
    figure, plot = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    rows = results("series_posts_30")
    name, *nights = [column for column in rows[0] if column.startswith(("posts", "night"))]
    shown = {"growing spending": (0, OURS), "equal spending": (1, ACCENT), "no resting": (2, OTHER)}
    for label, (place, color) in shown.items():
        x, y = [number(night.split()[1]) for night in nights], [number(rows[place][night]) for night in nights]
        plot.plot(x, y, "o-", color=color, lw=2, ms=5, label=label)
    [end] = [number(row[nights[-1]]) for row in rows if row[name] == "one release at the end"]
    plot.axhline(end, color=INK, lw=1, ls=(0, (2, 2)), label="one release at the end")
    plot.set(xlabel="night", ylabel="words released so far")
    plot.legend(fontsize=8.5)
    return figure


PICTURES: dict[str, Callable[[], plt.Figure]] = {
    "overview.svg": overview,
    "phrases.svg": phrases,
    "users-needed.svg": users_needed,
    "epsilon.svg": by_epsilon,
    "speed.svg": speed,
    "weightings.svg": weightings,
    "limits.svg": limits,
    "coverage.svg": coverage,
    "hitters.svg": hitters,
    "synthetic.svg": synthetic,
    "series.svg": series,
}


def main() -> None:
    """Draw all pictures again."""
    mpl.use("Agg")
    mpl.rcParams.update(STYLE)
    for name, draw in PICTURES.items():
        figure = draw()
        figure.savefig(HERE / name, facecolor="white", metadata={"Date": None, "Creator": None})
        plt.close(figure)
        print(name)


if __name__ == "__main__":
    main()
