"""`voxpop profile`: the values of all columns of a table."""

import sys
from typing import Any

from voxpop.cli import options as given
from voxpop.cli import releasing


def profile(
    source: given.Sources,
    /,
    *,
    output: given.Output,
    table: given.TableOptions = given.Table(),
    options: given.ProfiledOptions = given.Profiled(),
    spend: given.SpendOptions = given.Spend(),
    charge: given.ChargeOptions = given.Charge(),
    result: given.ResultOptions = given.Result(),
    run: given.RunOptions = given.Run(),
) -> None:
    """Release the values of all columns of a table that many users share, with noisy counts.

    --text names the columns of texts, separated by commas. The plan is printed before anything runs.

    Example: `voxpop profile orders.parquet --user customer --text comment --epsilon 2 --delta 1e-7 -o profile`
    """
    from voxpop.release.saving import PROFILE

    run.check()
    found, choice = releasing.opened(source, run), options.choice(table)
    profiling, budget = _profiling(found, choice), spend.budget

    def planned() -> Any:
        plan = profiling.plan(budget)
        sys.stderr.write(f"{plan}\n")
        return plan

    def read() -> Any:
        tokenizer = table.reading.get("tokenizer")
        reading = {name: choice[name] for name in ("types", "csv") if name in choice}
        with releasing.stage("Reading"):
            return profiling.read(
                found,
                user=choice["user"],
                **({} if tokenizer is None else {"tokenizer": tokenizer.name}),
                **reading,
                options=releasing.read_options(run),
            )

    made = releasing.released_to(PROFILE, output, planned, source, table, charge, run, result, read=read)
    if result.json:
        releasing.print_json(releasing.summary(made, output))
        return
    print(f"Released {releasing.plural(len(made), 'value')} of {releasing.plural(len(made.keys.columns), 'column')}.")
    for name, release in made.columns.items():
        cover = made.cover.get(name)
        share = "" if cover is None or cover.share is None else f"   covers about {100 * cover.share:.1f} %"
        print(f"  {len(release):>9,}  {name}{share}")
    for names, release in made.joint.items():
        print(f"  {len(release):>9,}  {' x '.join(names)}")
    print(releasing.guarantee_text(made.guarantee))
    print(releasing.saved(output.resolve(), made.about))


def plan_profile(
    source: given.Sources,
    /,
    *,
    table: given.TableOptions = given.Table(),
    options: given.ProfiledOptions = given.Profiled(),
    spend: given.SpendOptions = given.Spend(),
    json: given.Json = False,
) -> None:
    """Show the plan of `voxpop profile`: its columns, its guarantee and its noise. Reads only the schema.

    Example: `voxpop plan profile orders.parquet --user customer --epsilon 2 --delta 1e-7`
    """
    releasing.print_plan(_profiling(source, options.choice(table)).plan(spend.budget), as_json=json)


def _profiling(source: Any, choice: dict[str, Any]) -> Any:
    import voxpop as vp

    return vp.Profiling.of(source, **choice)
