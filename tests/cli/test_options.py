"""Tests of the options of all commands, including help, defaults, lists of columns and repetition."""

from dataclasses import MISSING, fields

import polars as pl
import pytest

import voxpop as vp
from voxpop.cli.app import CHOICES, app
from voxpop.cli.options import options_of
from voxpop.release.registry import MECHANISMS, load_object

BUDGET = ["--epsilon", 4, "--delta", "1e-6"]
COMMANDS = [
    (name, *below)
    for name in app
    if not name.startswith("-")
    for below in [(), *((each,) for each in app[name] if not each.startswith("-"))]
]
RUNNABLE = [names for names in COMMANDS if names not in (("plan",), ("ledger",), ("series",))]


def arguments_of(names):
    """Return the arguments of a command, with groups of options expanded."""
    command = app
    for name in names:
        command = command[name]
    return [each for each in command.assemble_argument_collection(parse_docstring=True) if each.parse and each.show]


def test_all_commands_are_listed():
    """The lists of commands that the tests below use are not empty and contain commands of both levels."""
    assert {("items",), ("sequences",), ("plan", "ngrams"), ("plan", "top"), ("ledger", "init")} <= {*RUNNABLE}


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_every_command_has_short_help(voxpop, names):
    """`-h` has the same effect as `--help`."""
    code, out, err = voxpop(*names, "-h")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: voxpop {' '.join(names)} ")
    assert "[default: False]" not in out
    assert "[default: None]" not in out


@pytest.mark.parametrize("names", RUNNABLE, ids=" ".join)
def test_every_option_is_described(names):
    """A description begins with a capital letter or a word in quotes, and ends with a full stop."""
    arguments = arguments_of(names)
    assert arguments
    for each in arguments:
        text = each.parameter.help
        assert text, each.name
        assert text[0].isupper() or text[0] == '"' or each.name == "MECHANISM", (each.name, text)
        assert text.rstrip().endswith("."), (each.name, text)


@pytest.mark.parametrize(
    "each", [each for each in MECHANISMS if each.command in CHOICES], ids=lambda each: each.command
)
def test_defaults_equal_the_defaults_of_the_mechanism(each):
    """The fields of the configuration are the only source of defaults."""
    configuration = load_object(each.config)
    assert options_of(configuration, CHOICES[each.command])().configured == configuration()
    for names in ((each.command,), ("plan", each.command)):
        shown = {argument.name.lstrip("-").replace("-", "_"): argument for argument in arguments_of(names)}
        for field in fields(configuration):
            # Empty lists are not compared, because converted options have other types.
            expected = None if field.default is MISSING or field.default == () else field.default
            assert shown[field.name].field_info.default == expected


@pytest.mark.parametrize("each", [each for each in MECHANISMS if each.command in ("count", "top")])
def test_defaults_of_additions_equal_the_defaults_of_the_mechanism(each):
    """Each field of counts and rankings is an option."""
    for field in fields(load_object(each.config)):
        name = f"--{field.name.replace('_', '-')}"
        for names in ((each.command,), ("plan", each.command)):
            (option,) = (argument for argument in arguments_of(names) if argument.name == name)
            assert str(option.field_info.default) == str(field.default)


@pytest.fixture
def sales(tmp_path):
    """Write a table with two user columns and two columns of items."""
    frame = pl.DataFrame(
        {
            "shop": ["north", "south"] * 600,
            "person": range(1200),
            "kind": ["tea", "milk"] * 600,
            "size": [1, 2] * 600,
        }
    )
    frame.write_parquet(tmp_path / "sales.parquet")


@pytest.mark.usefixtures("sales")
@pytest.mark.parametrize(
    "columns",
    [
        ["--user", "shop", "--user", "person", "--items", "kind", "--items", "size"],
        ["--user", "shop,person", "--items", "kind,size"],
    ],
)
def test_names_of_several_columns_can_be_repeated_or_separated_by_commas(voxpop, tmp_path, columns):
    """An option for column names can be repeated or can contain names separated by commas."""
    assert voxpop("items", "sales.parquet", *columns, *BUDGET, "-o", "found").code == 0
    assert vp.load(tmp_path / "found").to_list() == [("milk", 2), ("tea", 1)]


@pytest.mark.usefixtures("sales")
@pytest.mark.parametrize(
    "twice",
    [
        ["--epsilon", 1],
        ["--text", "kind", "--text", "size"],
        ["--max-items-per-user", 3, "--max-items-per-user", 4],
        ["--seed", 1, "--seed", 2],
        ["-o", "other"],
        ["--memory", "2GiB", "--memory", "3GiB"],
    ],
)
def test_other_options_may_not_be_repeated(voxpop, tmp_path, twice):
    """Two values for one option are an error, so that neither value silently overrides the other."""
    call = ["items", "sales.parquet", "--user", "person", "--items", "kind", *BUDGET, "-o", "found", *twice]
    assert "specified multiple times" in voxpop(*call).complaint
    assert not (tmp_path / "found").exists()


def test_declared_types_of_columns_are_used(voxpop, tmp_path):
    """A type may contain a comma. The option can be repeated for several types."""
    rows = "".join(f"{number},{'1.50' if number % 2 else '2.5'}\n" for number in range(800))
    (tmp_path / "sales.csv").write_text(f"who,price\n{rows}")
    call = ["items", "sales.csv", "--user", "who", "--items", "price", *BUDGET, "-o", "found"]
    types = ["--types", "price=decimal(12,2)", "--types", "who=int64"]
    assert voxpop(*call, *types).code == 0
    assert [str(each) for each in vp.load(tmp_path / "found").to_list()] == ["1.50", "2.50"]
    for wrong in ("price", "=int64", "price="):
        assert "COLUMN=TYPE" in voxpop(*call, "--overwrite", "--types", wrong).complaint


def test_an_argument_without_an_option_is_explained(voxpop):
    """The message explains that names in a list are separated by commas."""
    code, _, complaint = voxpop("items", "t.parquet", "--user", "who", "--text", "a", "b", *BUDGET, "-o", "x")
    assert code == 2
    assert "'b' belongs to no option. Write --name VALUE, and commas in lists of names. See `voxpop items" in complaint
