#!/usr/bin/env python3
"""Compiles a source and fails if that takes longer than it may.

    compile_time.py SECONDS COMPILER [FLAG...] SOURCE

Processor time, the least of three: other tests run beside this one.
"""
import resource
import subprocess
import sys


def seconds_of(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(limit, compiler, *flags):
    least = min(seconds_of([compiler, *flags, "-c", "-o", "/dev/null"]) for _ in range(3))
    print(f"{least:.2f} s of {limit}")
    sys.exit(least > float(limit))


if __name__ == "__main__":
    main(*sys.argv[1:])
