"""The commands of the command line. Heavy libraries are imported only when a command runs."""

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

import voxpop as vp
from voxpop.cli import options as given
from voxpop.cli import releasing
from voxpop.cli.blocking import block
from voxpop.cli.demo import demo
from voxpop.cli.jobs import command_for, sign
from voxpop.cli.ledger import app as ledger
from voxpop.cli.saved import (
    ask,
    complete,
    count,
    explain,
    export,
    resume,
    show,
    show_count_plan,
    show_top_plan,
    top,
    verify,
)
from voxpop.cli.series import app as series
from voxpop.cli.sources import CONTENTS, is_event_log, missing_column
from voxpop.errors import InputError, InternalError, on_one_line, shown
from voxpop.privacy.budget import check_choice, printable
from voxpop.release.registry import MECHANISMS, load_object
from voxpop.release.saving import MODEL, PROFILE, RELEASE

if TYPE_CHECKING:
    from voxpop.mechanisms.sequences.model import SequenceModel
    from voxpop.testing.auditing import Finding

_FIND = "find"
_MOST_NAMES = 20
"""The maximum number of symbols that are printed."""


def alphabet_of(text: str | None) -> Any:
    """Return the alphabet given by an option, which is a list of symbols, a saved release, "find" or None.

    Raises:
        InputError: If a file cannot be read.
    """
    if text is None or text == _FIND:
        return text
    path = Path(text)
    if path.is_dir():
        return RELEASE.load(path)
    if path.is_file():
        return given.listed_file(path, "--alphabet")
    if "," not in text and ("/" in text or path.suffix in (".txt", ".csv", ".parquet", ".json")):
        raise InputError(
            f"--alphabet {text}: no such file or folder. Give an existing one, or symbols separated by commas."
        )
    return given.listed(text, "--alphabet")


def _length_weights(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in given.listed(text, "--length-weights")]
    except ValueError:
        raise InputError(f"--length-weights must be a number, or numbers separated by commas; got {text}.") from None


CHOICES = {
    "items": {
        "known": given.FieldChoice(
            str | None,
            "Public items that need fewer users, such as a dictionary or a catalogue: a text file in UTF-8 with one "
            "item per line, a table (CSV, TSV, Parquet, Arrow) with the columns of the items, or the folder of a saved "
            "release. It must not be made from the data.",
        ),
    },
    "ngrams": {
        "length_weights": given.FieldChoice(
            str | None,
            "The value of a released phrase, one number for each length, separated by commas. Lengths with a larger "
            "value get more of the budget. By default all lengths have the same value. Choose the numbers without "
            "looking at the data.",
            _length_weights,
        ),
        "known": given.FieldChoice(
            str | None,
            "Public words that need fewer users, such as a dictionary: a text file in UTF-8 with one word per line, a "
            "table with one column, or the folder of a saved release. It must not be made from the data.",
        ),
    },
    "heavy-hitters": {
        "unit": given.FieldChoice(str, convert=lambda text: int(text) if text.isdecimal() else text),
        "exclude": given.FieldChoice(
            str | None,
            "A text file in UTF-8 with one public word per line, such as a dictionary. No user votes for these words.",
            lambda path: path or (),
        ),
    },
    "sequences": {
        "alphabet": given.FieldChoice(
            Annotated[str | None, Parameter(name=["--alphabet", "--alphabet-file"])],
            "All symbols that may occur, separated by commas, or a UTF-8 file with one symbol per line, or the folder "
            'of a release of single items. Spaces around symbols are ignored; "a, b" in double quotes is one symbol. '
            "The alphabet is public; other symbols are removed from every sequence, with a message. "
            '"find" finds the alphabet with a quarter of epsilon and the whole delta.',
            alphabet_of,
        )
    },
}
"""The fields of mechanisms that have a different type on the command line."""
WRITTEN = {"profile", "keys", "count", "top"}
"""The mechanisms that have a function in this file. The other commands follow from the registry and `EXAMPLES`."""
EXAMPLES = {
    "items": "voxpop items posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o words",
    "ngrams": "voxpop ngrams posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o phrases",
    "heavy-hitters": "voxpop heavy-hitters posts.parquet --user author --text body --epsilon 1 --delta 1e-8 -o words",
    "sequences": "voxpop sequences visits.parquet --user user --sequence pages --epsilon 1 --alphabet home,news,sport "
    "--synthesize 1000 -o model",
}


def _version() -> str:
    return f"voxpop {vp.__version__}"


def _whole_numbers(app: App, commands: Any, arguments: Any) -> None:
    """Raise an error if a fraction is given instead of an integer, because the parser would silently round it."""
    for each in arguments:
        if each.hint in (int, int | None):
            for token in each.tokens:
                if "." in token.value:
                    raise InputError(f"{each.name} must be a whole number, such as 20. Write it without a point.")


def _nothing_missing(app: App, commands: Any, arguments: Any) -> None:
    """Raise an error that lists all missing arguments of a release, because the parser would name only one argument."""
    found = {each.name: [token.value for token in each.tokens] for each in arguments}
    if commands[0] == "plan" or not {"--user", "--epsilon"} <= {*found}:
        return
    source, contents = found["SOURCE"], [f"--{kind}" for kind in CONTENTS]
    no_source, no_contents = not source and not found["--sql"], not any(found[name] for name in contents)
    finds = commands[0] != "sequences" or found["--alphabet"] == [_FIND]
    # An event log needs no content column, and no user column if its cases are the users.
    logged = no_contents and not no_source and (not source or is_event_log(source, cases=not found["--user"]))
    missing = {
        "SOURCE (files or folders)": no_source,
        "--user COLUMN": not found["--user"] and not logged,
        f"{', '.join(contents[:-1])} or {contents[-1]} COLUMN": no_contents and not logged and commands[0] != "profile",
        "--epsilon EPSILON": not found["--epsilon"],
        "--delta DELTA": not found["--delta"] and finds,
        "--output DIR": not found.get("--output", True),
    }
    names = [name for name, absent in missing.items() if absent]
    if names == ["--output DIR"]:
        raise InputError("--output is missing. Name the folder to save to, such as --output result.")
    if len(names) > 1:
        text = f"These arguments are missing: {'; '.join(names)}. See `voxpop {' '.join(commands)} --help`."
        raise missing_column(text, source) if any("COLUMN" in name for name in names) else InputError(text)


app = App(
    name="voxpop",
    help="Find the items, phrases and sequences that many users share, and release them with user-level differential "
    "privacy. Every command accepts `--log FILE` to write its events, and `--errors json` to print errors as JSON.",
    version=_version,
    version_flags=["--version"],
    help_flags=["--help", "-h"],
    result_action="return_value",
    config=[_nothing_missing, _whole_numbers],
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=(), show_default=given.shown_default),
)
plans = App(
    name="plan",
    help="Show the noise, the thresholds and the number of users that an item needs. Reads no private data.",
)


def _release_command(options_type: Any) -> Callable[..., None]:
    def command(
        source: given.Sources = None,
        /,
        *,
        output: given.Output,
        options: Annotated[options_type, given.MECHANISM_GROUP] = options_type(),
        call: given.CallOptions = given.Call(),
        result: given.ResultOptions = given.ResultArguments(),
    ) -> None:
        plan = _plan(options, call.spend)
        release = releasing.released_to(RELEASE, output, plan, source, call, result)
        lines = releasing.lines_of_release(release)
        releasing.print_result(release, output.resolve(), lines, as_json=result.json)

    return command


def _sequences_command(options_type: Any) -> Callable[..., None]:
    def command(
        source: given.Sources = None,
        /,
        *,
        output: given.Output,
        synthesize: Annotated[
            int, Parameter(help="Also save this number of synthetic sequences.", validator=given.COUNTED)
        ] = 0,
        options: Annotated[options_type, given.MECHANISM_GROUP] = options_type(),
        call: given.CallOptions = given.Call(),
        result: given.ResultOptions = given.ResultArguments(),
    ) -> None:
        from voxpop.mechanisms.sequences.model import save_model
        from voxpop.privacy.composition import total_of

        plan = _sequences_plan(options, call.spend)
        alphabet = alphabet_of(options.alphabet)

        def save(model: Any, folder: Path) -> None:
            save_model(model, folder, sampled(model, synthesize, call.charge.seed))

        model = releasing.released_to(MODEL, output, plan, source, call, result, save)
        drawn = synthesize if len(model) else 0
        # The total also covers the release that found the alphabet.
        total = total_of([alphabet._stated, model._stated]) if isinstance(alphabet, vp.Result) else None
        lines = _lines_of_model(model, drawn)
        releasing.print_result(model, output.resolve(), lines, as_json=result.json, total=total, synthetic=drawn)

    return command


def _sequences_plan(options: Any, spend: given.SpendArguments) -> Callable[[], Any]:
    """Check that a delta is given if, and only if, the alphabet must be found."""
    budget = spend.pure
    if options.alphabet == _FIND and not budget.delta:
        raise InputError("--delta is missing, and --alphabet find requires it. Add one, such as --delta 1e-7.")
    if budget.delta and options.alphabet != _FIND:
        raise InputError("--delta applies only to --alphabet find. With a public alphabet, remove it.")
    return lambda: options.configured.plan(budget)


def _plan_command(
    options_type: Any, plan_of: Callable[[Any, given.SpendArguments], Callable[[], Any]]
) -> Callable[..., Any]:
    def command(
        *,
        options: Annotated[options_type, given.MECHANISM_GROUP] = options_type(),
        spend: given.SpendOptions = given.SpendArguments(),
        json: given.Json = False,
    ) -> Any:
        return releasing.print_plan(plan_of(options, spend)(), as_json=json)

    return command


def _plan(options: Any, spend: given.SpendArguments) -> Callable[[], Any]:
    budget = spend.budget
    return lambda: options.configured.plan(budget)


def sampled(model: "SequenceModel", number: int, seed: int | None) -> dict[str, bytes]:
    """Return the file of synthetic sequences by name, or an empty dictionary if `number` is 0 or the model is empty."""
    if not number or not len(model):
        return {}
    sink = io.BytesIO()
    with releasing.stage("Sampling"):
        model.sample(number, seed).write_parquet(sink)
    return {"synthetic.parquet": sink.getvalue()}


def _lines_of_model(model: "SequenceModel", synthetic: int) -> Iterator[str]:
    yield f"Released {releasing.plural(len(model), 'noisy count')}."
    known = [printable((symbol,)) for symbol in model.alphabet]
    more = f" and {len(known) - _MOST_NAMES:,} more" if len(known) > _MOST_NAMES else ""
    yield f"Alphabet of {releasing.plural(len(known), 'symbol')}: {' | '.join(known[:_MOST_NAMES]) or 'none'}{more}"
    if synthetic:
        yield f"Drew {releasing.plural(synthetic, 'synthetic sequence')}: synthetic.parquet"


def profile(
    source: given.Sources = None,
    /,
    *,
    output: given.Output,
    options: given.ProfiledOptions = given.ProfileArguments(),
    call: given.CallOptions = given.Call(),
    result: given.ResultOptions = given.ResultArguments(),
) -> None:
    """Release, with noisy counts, the values that many users share in each column of a table.

    --text names the text columns, separated by commas. The plan is printed before anything runs. With --joint and
    no other columns, the result contains the keys of the named columns with their counts, like the result of a GROUP BY
    query.

    Example: `voxpop profile orders.parquet --user customer --text comment --epsilon 2 --delta 1e-7 -o profile`
    """
    from voxpop.mechanisms.profile.mechanism import profiling_of

    call.run.check()
    found, choice = releasing.opened_source(call.table.source(source), call.run), options.choice(call.table)
    profiling, budget = profiling_of(found, **choice), call.spend.budget

    def planned() -> Any:
        plan = profiling.plan(budget)
        sys.stderr.write(f"{shown(str(plan))}\n")
        return plan

    def read() -> Any:
        tokenizer = call.table.reading.get("tokenizer")
        reading = {name: choice[name] for name in ("types", "csv") if name in choice}
        with releasing.stage("Reading"):
            return profiling.read(
                found,
                user=choice["user"],
                **({} if tokenizer is None else {"tokenizer": tokenizer.name}),
                **reading,
                options=releasing.read_options(call.run),
            )

    made = releasing.released_to(PROFILE, output, planned, source, call, result, read=read)
    releasing.print_result(made, output.resolve(), _lines_of_profile(made), as_json=result.json)


def _lines_of_profile(made: Any) -> Iterator[str]:
    columns = releasing.plural(len(made.keys.columns), "column")
    yield f"Released {releasing.plural(len(made), 'value')} of {columns}."
    for names, release in {**{(name,): each for name, each in made.columns.items()}, **made.joint}.items():
        cover = made.cover.get(" x ".join(names))
        share = None if cover is None else cover.shown(len(release))
        covers = "" if share is None else f"   covers about {share}"
        yield f"  {len(release):>9,}  {' x '.join(map(on_one_line, names))}{covers}"


def show_profile_plan(
    source: given.Sources = None,
    /,
    *,
    table: given.TableOptions = given.TableArguments(),
    options: given.ProfiledOptions = given.ProfileArguments(),
    spend: given.SpendOptions = given.SpendArguments(),
    json: given.Json = False,
) -> Any:
    """Show the plan of `voxpop profile`: its columns, its guarantee and its noise. Reads only the schema.

    Example: `voxpop plan profile orders.parquet --user customer --epsilon 2 --delta 1e-7`
    """
    from voxpop.mechanisms.profile.mechanism import profiling_of

    profiling = profiling_of(table.source(source), **options.choice(table))
    return releasing.print_plan(profiling.plan(spend.budget), as_json=json)


def audit(
    mechanism: Annotated[
        str,
        Parameter(name="MECHANISM", help=f"{', '.join(each.command for each in MECHANISMS if each.audited)} or all."),
    ],
    /,
    *,
    trials: Annotated[
        int, Parameter(help="Trials with and without the user each; ten times as many give slightly tighter bounds.")
    ] = 100_000,
    failure_probability: Annotated[float, Parameter(help="Probability that a bound is wrong.")] = 1e-9,
    json: given.Json = False,
) -> int:
    """Measure the information that releases reveal about one user. Reads no data.

    Runs the real release code on small synthetic collections, with and without one user, and prints lower bounds of
    epsilon and delta. The claim is epsilon 1 and delta 0.02 (delta 0 for sequences). The exit code is 1 if a claim is
    refuted, or if the release does not follow the plan.

    Example: `voxpop audit all --trials 2000000`
    """
    from voxpop.testing.auditing import AUDITED
    from voxpop.testing.auditing import audit as run

    check_choice("MECHANISM", mechanism, (*AUDITED, "all"))
    failed = 0
    for name in AUDITED if mechanism == "all" else [mechanism]:
        finding = run(name, trials, failure_probability)
        failed += not finding.passed
        releasing.print_json(finding.to_dict()) if json else releasing.say(line(finding))
    if failed:
        sys.stderr.write(f"{failed} of the cases above FAILED. Report this output and the version of voxpop.\n")
    return int(failed > 0)


def line(finding: "Finding") -> str:
    """Return a finding as two lines of text."""
    verdict = "ok" if finding.passed else "REFUTED" if finding.refuted else "NOT AS PLANNED"
    return (
        f"{finding.mechanism}; {finding.name}\n"
        f"    {verdict}: epsilon >= {finding.epsilon_shown:.3f} of {finding.epsilon:g} "
        f"(at most {finding.epsilon_exact:.3f} here), "
        f"delta >= {finding.delta_shown:.4f} of {finding.delta:g} (at most {finding.delta_exact:.4f}); "
        f"{finding.counts.trials:,} trials, failure probability {finding.failure_probability:g}"
    )


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(name="SHELL", help="The shell.")], /) -> None:
    """Print a script that lets a shell complete commands and options.

    Example: `voxpop completion bash > ~/.local/share/bash-completion/completions/voxpop`
    """
    sys.stdout.write(app.generate_completion(prog_name="voxpop", shell=shell))


for each in MECHANISMS:
    if each.command in WRITTEN:
        continue
    if each.command not in EXAMPLES:
        raise InternalError(f"`voxpop {each.command}` must have an example. Add one to EXAMPLES in cli/app.py")
    configuration = load_object(each.config)
    options_type = given.options_of(configuration, CHOICES.get(each.command, {}))
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
for each_command in (
    profile,
    count,
    top,
    ask,
    show,
    explain,
    complete,
    export,
    block,
    resume,
    verify,
    sign,
    audit,
    demo,
    completion,
):
    app.command(each_command)
plans.command(show_profile_plan, name="profile")
plans.command(show_count_plan, name="count")
plans.command(show_top_plan, name="top")
app.command(command_for(app), name="run")
app.command(plans)
app.command(ledger)
app.command(series)
