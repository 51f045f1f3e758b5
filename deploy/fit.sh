#!/bin/sh
# Fits into a run folder, or goes on with the run that is there: for whatever starts a program again that was cut off.
#   fit.sh RUN DATA --plan PLAN --ledger LEDGER …
set -eu
run=$1
shift
if [ -e "$run/run.json" ]; then
    set -- "$@" --resume
fi
exec doublure fit "$@" -o "$run"
