"""Tests that invalid combinations of engine options are rejected before anything starts."""

import pytest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "dask"], 'Choose from: "local", "spark"'),
        (["--master", "yarn"], "Add --engine spark"),
        (["--partitions", "3"], "Add --engine spark"),
    ],
)
def test_wrong_engine_options_are_rejected(voxpop, options, message):
    call = ["items", "a.csv", "--user", "u", "--items", "i", "--epsilon", 1, "--delta", 1e-6, "-o", "out"]
    assert message in voxpop(*call, *options).complaint
    sequences = [
        "sequences",
        "a.csv",
        "--user",
        "u",
        "--sequence",
        "i",
        "--epsilon",
        1,
        "--alphabet",
        "a,b",
        "-o",
        "out",
    ]
    assert message in voxpop(*sequences, *options).complaint
