"""`python -m rankdash.runs`: the worker."""

from rankdash.starting import starting

if __name__ == "__main__":
    with starting():
        from rankdash.runs.worker import main
    raise SystemExit(main())
