"""Tests of a series from the shell, including the commands init, run, show and delete."""

import re

import polars as pl

import voxpop as vp

COLUMNS = ["--user", "who", "--items", "what"]


def night(path, *words, first=0):
    """Write rows in which 3,000 users have all words."""
    users = range(first, first + 3000)
    pl.DataFrame({"who": [u for u in users for _ in words], "what": list(words) * 3000}).write_parquet(path)


def test_a_series_runs_from_the_shell(voxpop, tmp_path):
    """The series is charged once, every command opens the same state, and the release is saved and verified."""
    assert voxpop("ledger", "init", "team.ledger", "--dataset", "shop", "--epsilon", 7, "--delta", "1e-5").code == 0
    (tmp_path / "key").write_bytes(bytes(range(32)))
    key = ["--key-file", "key"]
    budget = ["--epsilon", 3, "--delta", "1e-6", "--ledger", "team.ledger", "--dataset", "shop"]
    started = voxpop("series", "init", "state", "--nights", 4, *budget, *key)
    assert "Items over 4 nights under one budget" in started.out
    assert re.search(r"night +share +sigma", started.out)
    assert "contains a series already" in voxpop("series", "init", "state", "--nights", 4, *budget, *key).complaint
    night(tmp_path / "1.parquet", "tea", "milk")
    first = voxpop("series", "run", "state", "1.parquet", *COLUMNS, "--night", 1, *key)
    again = voxpop("series", "run", "state", "1.parquet", *COLUMNS, "--night", 1, *key).out
    assert again == first.out + "This night has already run. Its result is shown again, and nothing was added.\n"
    repeated = voxpop("series", "run", "state", "1.parquet", *COLUMNS, "--night", 1, *key, "--json", "--log", "log")
    assert repeated.json["repeated"] is True
    assert '"event": "repeated"' in (tmp_path / "log").read_text()
    night(tmp_path / "3.parquet", "tea", "milk", "oat")
    given = ["--night", 3, "-o", "words", *key, "--log", "third"]
    out = voxpop("series", "run", "state", "3.parquet", *COLUMNS, *given).out
    assert re.findall(r'"event": "(\w+)"', (tmp_path / "third").read_text()) == ["read", "released", "saved"]
    assert out.startswith("Night 3:")
    assert voxpop("verify", "words").code == 0
    assert "Items over 4 nights" in voxpop("show", "words").out
    shown = voxpop("series", "show", "state", *key)
    assert "3 of 4 nights" in shown.out
    assert "(3, 1e-06)-DP" in shown.out
    found = voxpop("series", "show", "state", *key, "--json").json
    assert sum(found["counts"]) == len(found["items"]) == len(vp.load("words"))
    assert "Deleted 3 items from 2 nights." in voxpop("series", "delete", "state", 17, *key).out
    for nobody in (17, "nobody", "017", "+18", " 18"):
        assert "nothing was deleted" in voxpop("series", "delete", "state", nobody, *key).complaint
    (entry,) = voxpop("ledger", "show", "team.ledger", "--json").json["datasets"][0]["entries"]
    assert entry["label"] == "series state"
    assert "encrypted" in voxpop("series", "show", "state").complaint
    assert "--run-id does not apply" in voxpop("series", "init", "s", "--nights", 4, *budget, "--run-id", "x").complaint


def test_a_series_with_a_seed_is_marked_from_the_start(voxpop):
    """`series init` marks the guarantee as NOT PRIVATE, like every later command."""
    budget = ["--epsilon", 3, "--delta", "1e-6"]
    assert "NOT PRIVATE" in voxpop("series", "init", "seeded", "--nights", 2, *budget, "--seed", 3).out
    assert "NOT PRIVATE" not in voxpop("series", "init", "private", "--nights", 2, *budget).out


def test_the_order_of_user_columns_is_the_same_every_night(voxpop, tmp_path):
    """If the order could change, each user would have two budgets."""
    ids = [str(number) for number in range(3000)]
    pl.DataFrame({"tenant": ids, "id": ids, "what": ["tea"] * 3000}).write_parquet(tmp_path / "1.parquet")
    voxpop("series", "init", "state", "--nights", 4, "--epsilon", 3, "--delta", "1e-6")
    run = ["series", "run", "state", "1.parquet", "--items", "what", "--user"]
    assert voxpop(*run, "tenant,id").code == 0
    complaint = voxpop(*run, "id,tenant").complaint
    assert "user columns are id, tenant on this night and tenant, id on earlier nights" in complaint
    assert voxpop(*run, "tenant,id").out.startswith("Night 2")


def test_users_below_zero_and_above_63_bits_can_be_deleted(voxpop, tmp_path):
    """On the command line, a number that begins with a hyphen follows two hyphens.

    The exit code is 2 if nothing was deleted.
    """
    for name, user in (("below", -5), ("above", 2**63 + 5)):
        kind = pl.Int64 if user < 0 else pl.UInt64
        rows = pl.DataFrame({"who": pl.Series([user, 7], dtype=kind), "what": ["tea", "milk"]})
        vp.Items().series(tmp_path / name, vp.Budget(3, 1e-6), nights=3).run(vp.read(rows, user="who", items="what"))
        assert "Deleted 1 item" in voxpop("series", "delete", name, "--", user).out
        again = voxpop("series", "delete", name, "--", user)
        assert again.code == 2
        assert "nothing was deleted" in again.complaint


def test_a_series_accepts_a_public_list(voxpop, tmp_path):
    """The list is given once, the plan and the report contain it, and the saved release is verified."""
    (tmp_path / "list.txt").write_text("tea\nnobody\n")
    budget = ["--nights", 3, "--epsilon", 3, "--delta", "1e-6", "--known", "list.txt"]
    for started in (voxpop("series", "plan", *budget), voxpop("series", "init", "state", *budget)):
        assert "2 items are known from a public list" in started.out
        assert "On each night, at most 1 % of the items released so far" in started.out
        assert re.search(r"threshold +known +rests below", started.out)
    night(tmp_path / "1.parquet", "tea", "milk")
    assert voxpop("series", "run", "state", "1.parquet", *COLUMNS, "--night", 3, "-o", "words").code == 0
    assert voxpop("verify", "words").code == 0
    release = vp.load(tmp_path / "words")
    assert dict(zip(release.to_list(), release.known.tolist(), strict=True)) == {"milk": False, "tea": True}
    missing = voxpop("series", "init", "other", *budget[:-1], "nothing.txt")
    assert "nothing.txt cannot be read" in missing.complaint
    assert not (tmp_path / "other").exists()


def test_a_public_list_of_composite_keys_is_read_from_a_file(voxpop, tmp_path):
    """The columns of the file are found by their names, and its strings are converted to the types of the data."""
    users = range(3000)
    rows = pl.DataFrame({"who": users, "country": ["NL"] * 3000, "product": [user % 4 for user in users]})
    rows.write_parquet(tmp_path / "rows.parquet")
    (tmp_path / "keys.csv").write_text('product,country\n0,NL\n1,NL\n9,"a|b"\n')
    read = ["rows.parquet", "--user", "who", "--items", "country,product"]
    budget = ["--epsilon", 2, "--delta", "1e-6"]
    call = voxpop("items", *read, *budget, "--known", "keys.csv", "--max-items-per-user", 1, "-o", "keys")
    assert call.code == 0
    release = vp.load(tmp_path / "keys")
    assert release.known.tolist() == [True, True, False, False]
    counted = voxpop("count", "keys", *read, *budget, "--known", "keys.csv", "--json")
    assert counted.code == 0
    assert counted.json["counted"] == 5
