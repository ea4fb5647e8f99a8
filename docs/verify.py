"""Check the certificate of a report without rankdash: python verify.py REPORT [VALUES]

Written from docs/certificate.md; needs Python 3.11 and NumPy. Exit code 0: correct; 1: not.
"""

import hashlib
import html
import json
import math
import re
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np

START = b'<script type="application/json" id="certificate">'
COUNTS = ("n", "paired", "helped", "same", "hurt")
NORMAL, NODES = NormalDist(), np.polynomial.legendre.leggauss(400)


def need(condition, reason):
    if not condition:
        raise ValueError(reason)


def sha256(item):  # bytes, or content for canonical JSON
    if not isinstance(item, bytes):
        item = json.dumps(item, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    return hashlib.sha256(item).hexdigest()


def single(pairs):
    need(len(dict(pairs)) == len(pairs), "a key occurs twice")
    return dict(pairs)


def t_tail(x, df):
    """Return P(t > x), x ≥ 0: with t = √df tan(a), the density is proportional to cos(a)^(df-1)."""
    end = math.atan(x / math.sqrt(df))
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(math.pi)
    heights = np.cos(end * (NODES[0] + 1) / 2) ** (df - 1)
    return max(0.0, 0.5 - float(heights @ NODES[1]) * end / 2 * scale)


def t_quantile(tail, df):
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, df) > tail else (low, middle)
    return high


def whole(x):  # the values as whole numbers of a step, the step, and the largest size
    largest = float(np.abs(x).max(initial=0.0))
    step = math.ldexp(1.0, max(math.frexp(largest * len(x))[1] - 51, -1000))
    return np.rint(x / step).astype(np.int64), step, largest


def cleaned(means, x, largest):
    return np.clip(np.where(np.abs(means) <= 1e-9 * largest, 0.0, means), x[0], x[-1])


class Numbers:  # of a certificate, computed from the values of the queries
    def __init__(self, content, data):
        self.content, self.data, self.s = content, data, content["statistics"]
        self.seed, self.draws = self.s["seed"], self.s["resamples"]
        need(self.draws <= 100_000, "too many resamples")
        self.p = getattr(self, f"p_of_{self.s['test'].replace('-', '_')}")

    def blocks(self, rows, bits):
        for start in range(0, self.draws, 500):
            draws = min(500, self.draws - start)
            source = np.random.PCG64([self.seed, start])
            yield draws, source.random_raw((rows, -(-bits * draws // 64))).astype("<u8")

    def resampled(self, x):
        (k, step, largest), n, means = whole(x), len(x), []
        if n < 1000:
            places = np.random.default_rng(self.seed).integers(0, n, size=(self.draws, n))
            means = [k[places].sum(axis=1) / n]
        else:
            edges = np.round(np.cumsum([1 / math.factorial(i) for i in range(12)]) / math.e * 65536)
            for draws, words in self.blocks(n, 16):
                weights = np.searchsorted(edges, words.view("<u2")[:, :draws], side="right")
                means.append(k @ weights / weights.sum(axis=0))
        return np.sort(cleaned(np.concatenate(means) * step, x, largest))

    def interval(self, values, limits, level):
        n, changed = len(values), int((np.abs(values) > 1e-12).sum())
        if n < 6 or (0 < changed < 3 and n < 30):
            return None, None
        sign = -1.0 if whole(values)[0].sum() < 0 else 1.0
        x = np.sort(values * sign)
        k, step, largest = whole(x)
        m, tie = float(cleaned(k.sum() / n * step, x, largest)), 1e-9 * largest
        s2, s3 = (float(np.cumsum((x - m) ** power)[-1]) for power in (2, 3))
        if self.s["interval"] in ("t", "skew-t"):
            varies, r = s2 > tie**2, t_quantile((1 - level) / 2, n - 1)
            e = math.sqrt(s2 / (n - 1) / n) if varies else 0.0
            g = math.sqrt(n * (n - 1)) / (n - 2) * s3 / s2**1.5 if varies else 0.0
            ends = [m - e * r, m + e * r]
            if self.s["interval"] == "skew-t" and abs(g) >= 1e-9:
                hall = [m - e * 3 / g * (np.cbrt(1 + g * (y - g / 6)) - 1) for y in (r, -r)]
                ends = [min(ends[0], max(hall[0], x[0])), max(ends[1], min(hall[1], x[-1]))]
        else:
            means, shares = self.resampled(x), [(1 - level) / 2, 1 - (1 - level) / 2]
            if self.s["interval"] == "bca":
                c = ((means < m - tie).sum() + (means <= m + tie).sum()) / 2
                z = NORMAL.inv_cdf(min(max(c, 0.5), self.draws - 0.5) / self.draws)
                a = s3 / (6 * s2**1.5) if s2 > 0 else 0.0
                edges = [NORMAL.inv_cdf(each) + z for each in shares]
                shares = [NORMAL.cdf(z + w / max(1 - a * w, 1e-9)) for w in edges]
            ends = np.quantile(means, shares)
        return tuple(np.clip(np.sort(np.multiply(ends, sign)), *limits).tolist())

    def p_of_sign_flip(self, d):
        k = whole(d)[0]
        sizes = np.sort(np.abs(k[k != 0]))[::-1]
        total, q = int(sizes.sum()), len(sizes)
        seen = abs(int(k.sum())) - 1e-9 * total
        if q <= int(math.log2(self.draws)) + 1:
            bits = np.arange(2 ** max(q - 1, 0)) >> np.arange(q)[:, None] & 1
            return float(np.mean(np.abs(2 * (sizes @ bits) - total) >= seen))
        flips = (np.unpackbits(w.view(np.uint8), axis=1)[:, :n] for n, w in self.blocks(q, 1))
        extreme = sum(int((np.abs(2 * (sizes @ bits) - total) >= seen).sum()) for bits in flips)
        return (extreme + 1) / (self.draws + 1)

    def p_of_t(self, d):
        if np.ptp(d) <= 1e-12:
            return float(not d.any())
        error = np.std(d, ddof=1) / math.sqrt(len(d))
        return 2 * t_tail(abs(float(d.mean() / error)), len(d) - 1)

    def p_of_wilcoxon(self, d):
        d = d[np.argsort(np.abs(d), kind="stable")]
        group = np.cumsum(np.diff(np.abs(d), prepend=0.0) > 1e-9 * np.abs(d).max())
        _, at, t = np.unique(group[group > 0], return_inverse=True, return_counts=True)
        n, doubled = len(at), (2 * np.cumsum(t) - t + 1)[at]
        r = int(doubled[d[group > 0] > 0].sum())
        if n <= (50 if len(t) == n else 13):
            ways = np.ones(1)
            for each in doubled.tolist():
                ways = np.pad(ways, (0, each)) + np.pad(ways, (each, 0))
            return min(1.0, 2 * float(min(ways[: r + 1].sum(), ways[r:].sum()) / 2**n))
        ties = float((t.astype(float) ** 3 - t).sum()) / 2
        z = (r / 2 - n * (n + 1) / 4) / math.sqrt((n * (n + 1) * (2 * n + 1) - ties) / 24)
        return math.erfc(abs(z) / math.sqrt(2))

    def corrected(self, raw):
        order = sorted((each for each, p in raw.items() if p is not None), key=raw.__getitem__)
        c, p = len(order), np.array([raw[each] for each in order])
        if self.s["correction"] == "holm":
            p = np.minimum(1, np.maximum.accumulate(p * np.arange(c, 0, -1)))
        elif self.s["correction"] == "bh":
            p = np.minimum(1, np.minimum.accumulate((p * c / np.arange(1, c + 1))[::-1])[::-1])
        return {**raw, **dict(zip(order, p.tolist(), strict=True))}, max(c, 1)

    def verdict(self, row, d, change, early, c):
        s, level, low, high = self.s, self.s["level"], row["delta_low"], row["delta_high"]
        alpha = (1 - level) / (c if s["correction"] == "holm" else 1)
        fewest = 6 if s["test"] == "t" else max(6, math.ceil(1 - math.log2(alpha) - 1e-9))
        if early or len(d) < fewest or not row["helped"] + row["hurt"]:
            return early or ("too_few" if len(d) < fewest else "identical")
        if low is None or low <= 0 <= high or row["p_corrected"] > 1 - level + 1e-12:
            strict = 1 - (1 - level) / (1 if s["correction"] == "none" else c)
            low, high = self.interval(d, change, max(2 * strict - 1, 0.5))
            margin = s["equal_margin"] or 0
            return "equal" if low is not None and -margin < low and high < margin else "unproven"
        least = 0 if s["worthwhile"] is None else s["worthwhile"] * row["before"] - 1e-12
        return "worse" if high < 0 else "better" if row["delta"] >= least else "small"

    def row_of(self, spec, at):
        """Return the numbers of a system, without p_corrected, and more for its verdict."""
        metric, values, level = self.content["metrics"][spec], self.data["values"], self.s["level"]
        first, own = (np.array(values[spec][i], dtype=float) for i in (0, at))
        low, high = metric["range"]
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        both, change = ~np.isnan(first) & ~np.isnan(own), (low - high, high - low)
        x, d, band = own[~np.isnan(own)], (own - first)[both], self.s["tie_band"] + 1e-12
        d[np.abs(d) <= 1e-12] = 0.0
        lists = {"mean": x, "before": first[both], "after": own[both], "delta": d}
        row = {name: float(each.mean()) if len(each) else None for name, each in lists.items()}
        up, down = int((d > band).sum()), int((d < -band).sum())
        row |= zip(COUNTS, (len(x), len(d), up, len(d) - up - down, down), strict=True)
        row["mean_low"], row["mean_high"] = self.interval(x, (low, high), level)
        ends = self.interval(d, change, level) if at else [row["delta"]] * 2
        row["delta_low"], row["delta_high"] = ends
        row["p"] = self.p(d) if at and len(d) >= 6 and metric["quality"] else None
        both[[*self.data["unanswered"][0], *self.data["unanswered"][at]]] = False
        early = ("" if metric["quality"] else "descriptive") if both.any() else "nothing_common"
        return row, d, change, early if len(x) or (~np.isnan(first)).any() else "no_values"

    def rows(self):
        """Return (metric, place of a system) → its numbers and the verdict."""
        rows, systems = {}, range(len(self.content["systems"]))
        for family in self.content["families"]:
            for group in [family] if self.s["family"] == "all" else [[spec] for spec in family]:
                made = {(spec, at): self.row_of(spec, at) for spec in group for at in systems}
                fixed, c = self.corrected({pair: made[pair][0]["p"] for pair in made})
                for pair, (row, *rest) in made.items():
                    row["p_corrected"] = fixed[pair]
                    row["verdict"] = self.verdict(row, *rest, c) if pair[1] else "baseline"
                    rows[pair] = row
        return rows


def printed(name, value):
    if value is None or name in ("p", "p_corrected"):
        return "–" if value is None else "<0.0001" if value < 0.00005 else f"{value:.4f}"
    text = f"{value:,.{0 if name in COUNTS else 3}f}"
    sign = "+" if name.startswith("delta") and value > 0 else ""
    return sign + text if re.search("[1-9]", text) else text.lstrip("-")


def correct(name, stored, value):
    if name == "verdict" or value is None:
        return stored == (value if name == "verdict" else [None, "–"])
    near = abs(stored[0] - value) <= 1e-10 * max(1, abs(value))
    return near and stored[1] == printed(name, stored[0])


def checks(report, values):
    if report.lstrip().startswith(b"{"):
        document = json.loads(report, object_pairs_hook=single)
        content = document.pop("certificate")
    else:
        before, rest = report.split(START) if START in report else (report, b"null")
        text, end, after = rest.partition(b"</script>")
        content = json.loads(text, object_pairs_hook=single)
        document = before + START + end + after
    need(content and "weights" not in content["conventions"], "such a report has no certificate")
    intact = content.pop("sha256") == sha256(content) and content["certificate"] == 1
    need(intact, "the certificate was changed, or its version is not 1")
    need(content["document"] == sha256(document), "the report was changed")
    data = content["data"] if values is None else json.loads(values, object_pairs_hook=single)
    need(data, "pass the values: rankdash verify REPORT … --values FILE")
    need(content["data_sha256"] == sha256(data), "the values were changed")
    names, numbers, rows = content["systems"], content["numbers"], Numbers(content, data).rows()
    stored = {(spec, at): row for spec in numbers for at, row in enumerate(numbers[spec])}
    need((content["metric"], 0) in rows, f"no numbers: {content['not_covered']} are not covered")
    need(stored.keys() == rows.keys(), "other rows of numbers than expected")
    first, last = numbers[content["metric"]], ("too_few", "nothing_common", "no_values")
    places = [(row["verdict"] in last, -(row["mean"][0] or 0)) for row in first]
    board = [names[at] for at in sorted(range(len(names)), key=places.__getitem__)]
    shown, texts = {}, {}
    if isinstance(document, bytes):
        lines = re.findall("<tr><th scope=row>(.*?)</tr>", document.decode(), re.DOTALL)
        lines = [[*map(html.unescape, re.split("<[^<>]*>", each))] for each in lines]
        texts = {next(filter(None, line)): line for line in lines}
        need([*texts] in ([], board) and len(texts) == len(lines), "the leaderboard has other rows")
    else:
        pairs = [(each["metric"], each["system"]) for each in document["comparisons"]]
        expected = [(spec, name) for spec in content["families"][0] for name in names]
        need(sorted(pairs) == sorted(expected), "comparisons lacks a row, or has one twice")
        need(document["leaderboard"] == board, "the leaderboard is not in the order of the means")
        settings = document["settings"] | content["conventions"] | content["statistics"]
        need(document["settings"] == settings, "other settings than in the certificate")
        shown = dict(zip(pairs, document["comparisons"], strict=True))
    for (spec, at), row in rows.items():
        own, beside = stored[spec, at], shown.get((spec, names[at]), {})
        need(own.keys() == row.keys(), "other numbers than expected")
        wrong = [key for key in row if not correct(key, own[key], row[key])]
        bare = {key: own[key][0] for key in row if key != "verdict"}
        if at:
            d, before = bare["delta"], bare["before"]
            bare["relative_delta"] = None if d is None or abs(d) >= 1e6 * before else d / before
            need(not beside or beside["verdict"]["kind"] == own["verdict"], "another verdict")
        wrong += [key for key in bare.keys() & beside.keys() if beside[key] != bare[key]]
        lacking = missing(own, at, texts[names[at]]) if texts and spec == content["metric"] else []
        yield f"{spec}, {names[at]}", [f"{key}: not {(row | bare)[key]}" for key in wrong] + lacking


def missing(row, at, shown):  # on the leaderboard
    expected = [f"{row['helped'][1]} / {row['hurt'][1]}"] if at else []
    for key in ("mean", "delta") if at else ("mean",):
        (low, low_text), (high, high_text) = row[f"{key}_low"], row[f"{key}_high"]
        wide = low is not None and high - low > 1e-12
        ends = [each for each in shown if each.startswith(low_text) and each.endswith(high_text)]
        expected += [row[key][1], *([low_text + high_text] if wide and not ends else [])]
    return [f"the leaderboard lacks {each}" for each in expected if each not in shown]


def main(paths):
    try:
        need(all(Path(each).stat().st_size <= 1e8 for each in paths), "a file is too large")
        found = list(checks(*[*(Path(each).read_bytes() for each in paths), None][:2]))
    except Exception as error:  # noqa: BLE001 (a report may have any content)
        found = [("the report", [f"cannot be checked: {type(error).__name__}: {error}"])]
    for subject, wrong in found:
        line = f"{'refused' if wrong else 'ok':<9}{subject} {'; '.join(wrong)}"
        print(line.encode("ascii", "backslashreplace").decode())
    failed = sum(bool(wrong) for _, wrong in found)
    print(f"FAILED: {failed} refused" if failed else "PASSED")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
