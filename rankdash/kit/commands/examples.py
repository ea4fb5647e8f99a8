"""Two examples of each command, for its help and the reference."""

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "serve": (
        "rankdash serve",
        "rankdash serve --host 0.0.0.0 --port 8501 --read-only",
    ),
    "check": (
        "rankdash check FOLDER",
        "rankdash check rows.csv --columns query=Question label=Grade",
    ),
    "sample-log": (
        "rankdash sample-log searches.txt --queries 150 --out queries.csv",
        "rankdash sample-log ubi_queries.jsonl.gz --queries 300 --seed 7 --out queries.csv",
    ),
    "evaluate": (
        "rankdash evaluate qrels.tsv initial.trec bge.trec -m ndcg@10,map",
        "rankdash evaluate qrels.tsv bge.trec --conventions trec_eval --per-query --format csv",
    ),
    "compare": (
        "rankdash compare --qrels qrels.tsv --baseline initial.trec --challenger bge.trec",
        "rankdash compare --qrels qrels.tsv --baseline initial.trec --challenger a.trec b.trec "
        "-m ndcg@10,mrr@10 --worthwhile 0.05",
    ),
    "gate": (
        "rankdash gate --qrels qrels.tsv --baseline main.trec --challenger branch.trec "
        "--min-gain ndcg@10=0.0 --max-hurt 0.2",
        "rankdash gate --qrels qrels.tsv --baseline main.trec --challenger branch.trec "
        "--max p95_ms=500 --timings branch.json --out gate.xml",
    ),
    "nightly": (
        "rankdash nightly nightly.toml --out nightly.xml",
        "rankdash nightly nightly.toml --accept",
    ),
    "online": (
        "rankdash online outcomes.csv",
        "rankdash online orders.parquet --columns unit=visitor outcome=orders --planned --json",
    ),
    "policy": (
        "rankdash policy --qrels qrels.tsv --baseline initial.trec --challenger bge.trec "
        "--depth 20",
        "rankdash policy --qrels qrels.tsv --baseline initial.trec --challenger bge.trec "
        "--timings bge.json --skip-loss 0.01 --deadline 100 --output policy.json",
    ),
    "report": (
        "rankdash report --data FOLDER --challenger bge.trec --timings bge.json --out report.html",
        "rankdash report --qrels qrels.tsv --baseline initial.trec --challenger bge.trec "
        "--preset decision --out decision.html",
    ),
    "verify": (
        "rankdash verify report.html --qrels qrels.tsv --run initial.trec bge.trec",
        "rankdash verify report.html --data FOLDER --run bge.trec --timings bge.json --json",
    ),
    "export": (
        "rankdash export ranx --data FOLDER --run bge.trec --out ranx",
        "rankdash export quepid --data FOLDER --out ratings.csv",
    ),
    "retrieve": (
        "rankdash retrieve --data FOLDER --how bm25 --out bm25.trec",
        "rankdash retrieve --data FOLDER --how hybrid --depth 50 --out hybrid.trec",
    ),
    "fetch": (
        "rankdash fetch --preset elasticsearch > docs.json",
        "rankdash fetch docs.json --queries queries.csv --depth 100 --out FOLDER",
    ),
    "rerank": (
        "rankdash rerank --data FOLDER --reranker bi-encoder --out bge.trec --timings bge.json",
        "rankdash rerank --data FOLDER --reranker cross-encoder --depth 20 "
        "--set model=BAAI/bge-reranker-base --out cross.trec",
    ),
    "merge": (
        "rankdash merge shard-1.part shard-2.part --out merged.trec",
        "rankdash merge shard-1.part shard-2.part --out merged.trec --timings merged.json",
    ),
    "fuse": (
        "rankdash fuse --run initial.trec bge.trec --out fused.trec",
        "rankdash fuse --run initial.trec bge.trec --method minmax --weight 1 2 --out fused.trec",
    ),
    "label plan": (
        "rankdash label plan --run initial.trec bge.trec --top 3 --out plan.jsonl",
        "rankdash label plan --run a.trec b.trec --metric precision@5 --qrels old.tsv "
        "--out plan.jsonl",
    ),
    "label next": (
        "rankdash label next plan.jsonl --data FOLDER --count 100 --out todo.csv",
        "rankdash label next plan.jsonl --data FOLDER --rater ann --json",
    ),
    "label add": (
        "rankdash label add plan.jsonl done.csv --rater ann",
        "rankdash label add plan.jsonl --query q1 --doc d7 --label 2 --rater ann",
    ),
    "label status": (
        "rankdash label status plan.jsonl",
        "rankdash label status plan.jsonl --judge grades.csv --out labels.csv",
    ),
    "judge run": (
        "rankdash judge run --data FOLDER --run initial.trec bge.trec --set model=gpt-4.1-mini "
        "--out grades.csv",
        "rankdash judge run --data FOLDER --run initial.trec --template binary --sample 50 "
        "--set base_url=http://127.0.0.1:8080/v1 --out grades.csv --yes",
    ),
    "judge agreement": (
        "rankdash judge agreement --judge grades.csv --qrels qrels.tsv",
        "rankdash judge agreement --judge a.csv b.csv --qrels qrels.tsv --data FOLDER "
        "--run initial.trec bge.trec",
    ),
    "rerankers": (
        "rankdash rerankers",
        "rankdash rerankers --plugin overlap.py --json",
    ),
    "workspace export": (
        "rankdash workspace export everything.zip",
        "rankdash workspace export helpcentre.zip --data helpcentre",
    ),
    "workspace import": (
        "rankdash workspace import everything.zip",
        "rankdash workspace import - < everything.zip",
    ),
    "workspace repair": (
        "rankdash workspace repair",
        "RANKDASH_HOME=/srv/rankdash rankdash workspace repair",
    ),
    "workspace check": (
        "rankdash workspace check",
        "RANKDASH_HOME=/srv/rankdash rankdash workspace check",
    ),
}
