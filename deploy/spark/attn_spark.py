"""Lines of a corpus through a command of attn, on Spark.

    spark-submit --files attn --archives model.tar.gz#model attn_spark.py \\
        corpus.txt out ./attn translate --model model --json

Each partition is piped through one process, so the model is loaded once for all of its
lines. attn writes one line for each line, in order; one that cannot be processed becomes
{"error": "..."}. Spark repeats a partition whose executor is lost, and its committer
publishes each partition once, as a file part-NNNNN; in the order of these names their
lines are those of the input.

The command is found on the nodes, or in the executor's folder, where --files and
--archives put what they bring. Of its environment it gets what spark.executorEnv says. A
process takes as many threads as GOMAXPROCS says:

    --conf spark.executorEnv.GOMAXPROCS=2 --conf spark.task.cpus=2
"""

import argparse
import shlex

from pyspark import SparkConf, SparkContext


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, help="minimum number of partitions; default one per block of the file system")
    parser.add_argument("input", help="text file, folder or pattern")
    parser.add_argument("output", help="folder that is not there yet")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="command that maps lines to lines, with its flags")
    args = parser.parse_args()
    if not args.command:
        parser.error("missing command, such as: ./attn translate --model model")

    conf = SparkConf().setAppName("attn")
    # A line ends in LF and nothing else, as attn reads it: Hadoop would cut it at a CR too.
    conf.set("spark.hadoop.textinputformat.record.delimiter", "\n")
    sc = SparkContext(conf=conf)
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin"}  # pipe gives the command no other variable
    for key, value in sc.getConf().getAll():
        if key.startswith("spark.executorEnv."):
            env[key.removeprefix("spark.executorEnv.")] = value
    try:
        lines = sc.textFile(args.input, args.partitions)
        lines.pipe(shlex.join(args.command), env=env, checkCode=True).saveAsTextFile(args.output)
    finally:
        sc.stop()


if __name__ == "__main__":
    main()
