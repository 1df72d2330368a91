"""The engine on Apache Spark: each Spark partition holds a small corpus, and only released results reach the driver."""

from voxpop.engine.spark.worker import set_up

set_up()  # every task arrives as a function of this package, so this runs before any kernel is imported
