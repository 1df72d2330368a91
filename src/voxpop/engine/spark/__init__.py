"""The engine on Apache Spark. Each partition stores a small corpus, and only released results reach the driver."""

from voxpop.engine.spark.worker import set_up

set_up()  # this runs before any kernel is imported, because every task unpickles a function of this package
