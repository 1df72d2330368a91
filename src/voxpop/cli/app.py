"""The commands. Heavy libraries are imported when a command runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from voxpop.cli import options as given
from voxpop.cli.audit import audit
from voxpop.cli.demo import demo
from voxpop.cli.ledger import app as ledger
from voxpop.cli.profile import plan_profile, profile
from voxpop.cli.releasing import print_plan, print_release, released_to
from voxpop.cli.saved import ask, complete, count, export, plan_count, plan_top, resume, show, top, verify
from voxpop.cli.sequences import alphabet_of, check_delta, print_model, sampled
from voxpop.cli.series import app as series
from voxpop.reading.choices import WeightingName
from voxpop.release.registry import MECHANISMS, load


def _weighting(name: str) -> Any:
    """Return the weighting of a name; "adaptive" is itself."""
    from voxpop.mechanisms.weightings.builtin import WEIGHTINGS

    return WEIGHTINGS.get(name, name)


CHOICES = {
    "items": {
        "weighting": given.Choice(
            WeightingName,
            _weighting,
            'How users share their weight: in "adaptive" rounds, or by a classic weighting. At limit 1 every classic '
            "weighting runs optimal selection.",
        )
    },
    "ngrams": {
        "values": given.Choice(
            str | None,
            lambda text: None if text is None else given.numbers_of("--values", text, float),
            "The worth of a released phrase, one number for each length, separated by commas. Lengths that are worth "
            "more get more of the budget. By default all lengths count the same. Choose the numbers without looking at "
            "the data.",
        )
    },
    "hitters": {"unit": given.Choice(str, lambda text: int(text) if text.isdecimal() else text)},
    "sequences": {
        "alphabet": given.Choice(
            str | None,
            alphabet_of,
            "All symbols that may occur, separated by commas, or a UTF-8 file with one symbol per line, or the folder "
            "of a release of single items. The alphabet is public; other symbols are removed from every sequence. "
            '"find" finds the alphabet with a quarter of epsilon and all of delta.',
        )
    },
}
"""Fields of mechanisms whose values need a conversion on the command line."""
EXAMPLES = {
    "items": "voxpop items posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o words",
    "ngrams": "voxpop ngrams posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o phrases",
    "hitters": "voxpop hitters posts.parquet --user author --text body --epsilon 1 --delta 1e-8 -o words",
    "sequences": "voxpop sequences visits.parquet --user user --sequence pages --epsilon 1 --alphabet home,news,sport "
    "--synthesize 1000 -o model",
}


def _version() -> str:
    import voxpop

    return f"voxpop {voxpop.__version__}"


app = App(
    name="voxpop",
    help="Find the items, phrases and sequences that many users share, and release them with user-level differential "
    "privacy.",
    version=_version,
    version_flags=["--version"],
    help_flags=["--help", "-h"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=(), show_default=given.shown_default),
)
plans = App(
    name="plan",
    help="Show the noise, the thresholds and the number of users that an item needs. Reads no private data.",
)


def _release_command(options_type: Any) -> Callable[..., None]:
    def command(
        source: given.Sources,
        /,
        *,
        output: given.Output,
        table: given.TableOptions = given.Table(),
        options: Annotated[options_type, given.MECHANISM_GROUP] = options_type(),
        spend: given.SpendOptions = given.Spend(),
        charge: given.ChargeOptions = given.Charge(),
        result: given.ResultOptions = given.Result(),
        run: given.RunOptions = given.Run(),
    ) -> None:
        from voxpop.release.saving import RELEASE

        plan = _plan(options, spend)
        release = released_to(RELEASE, output, plan, source, table, charge, run, result)
        print_release(release, output.resolve(), as_json=result.json)

    return command


def _sequences_command(options_type: Any) -> Callable[..., None]:
    def command(
        source: given.Sources,
        /,
        *,
        output: given.Output,
        synthesize: Annotated[
            int, Parameter(help="Also save this number of synthetic sequences.", validator=given.COUNTED)
        ] = 0,
        table: given.TableOptions = given.Table(),
        options: Annotated[options_type, given.MECHANISM_GROUP] = options_type(),
        spend: given.SpendOptions = given.Spend(),
        charge: given.ChargeOptions = given.Charge(),
        result: given.ResultOptions = given.Result(),
        run: given.RunOptions = given.Run(),
    ) -> None:
        from voxpop.mechanisms.sequences.model import save_model
        from voxpop.release.saving import MODEL

        plan = _sequences_plan(options, spend)
        alphabet = alphabet_of(options.alphabet)

        def save(model: Any, folder: Path) -> None:
            save_model(model, folder, sampled(model, synthesize, charge.seed))

        model = released_to(MODEL, output, plan, source, table, charge, run, result, save)
        print_model(model, output.resolve(), alphabet, as_json=result.json, synthetic=synthesize if len(model) else 0)

    return command


def _sequences_plan(options: Any, spend: given.Spend) -> Callable[[], Any]:
    budget = spend.pure
    check_delta(options.alphabet, budget.delta)
    return lambda: options.configured.plan(budget)


def _plan_command(options_type: Any, plan_of: Callable[[Any, given.Spend], Callable[[], Any]]) -> Callable[..., None]:
    def command(
        *,
        options: Annotated[options_type, given.MECHANISM_GROUP] = options_type(),
        spend: given.SpendOptions = given.Spend(),
        json: given.Json = False,
    ) -> None:
        print_plan(plan_of(options, spend)(), as_json=json)

    return command


def _plan(options: Any, spend: given.Spend) -> Callable[[], Any]:
    budget = spend.budget
    return lambda: options.configured.plan(budget)


for each in MECHANISMS:
    if each.command not in CHOICES:
        continue
    configuration = load(each.config)
    options_type = given.options_of(configuration, CHOICES[each.command])
    of_sequences = each.command == "sequences"
    summary, example = configuration.__doc__.splitlines()[0], EXAMPLES[each.command]
    app.command(
        (_sequences_command if of_sequences else _release_command)(options_type),
        name=each.command,
        help=f"{summary}\n\nExample: `{example}`",
    )
    plans.command(
        _plan_command(options_type, _sequences_plan if of_sequences else _plan),
        name=each.command,
        help=f"Show the plan of `voxpop {each.command}`: its guarantee, noise and thresholds. Reads no data.",
    )
for each_command in (profile, count, top, ask, show, complete, export, resume, verify, audit, demo):
    app.command(each_command)
plans.command(plan_profile, name="profile")
plans.command(plan_count, name="count")
plans.command(plan_top, name="top")
app.command(plans)
app.command(ledger)
app.command(series)
