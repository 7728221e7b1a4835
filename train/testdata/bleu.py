"""Writes bleu.json: what sacrebleu says of small corpora, for bleu_test.go.

    python3 -m venv venv && venv/bin/pip install -r requirements.txt && venv/bin/python bleu.py
"""

import json
import pathlib
import random

import sacrebleu

METRIC = sacrebleu.BLEU()
TOKENIZER = METRIC.tokenizer

# One text each; also cut into tokens alone, so that a wrong cut is named and not only a wrong score.
TEXTS = [
    "", " ", "a", ".", "...", "a.b", "a..b", "a.,b", "1.,2", "1,000.5", "1,000.5.", ".5", "5.", "x.5", "5.x", ",,,1,,2,,",
    "$1,000.50 (or 10%)", "3-4", "-3", "a-b", "3 - 4", "3--4", "2019-03-05", "well-known", "pre-\nfix", "line\nbreak", "end-\n",
    "don't", "'quoted'", "l'homme n'est pas là.", "C’est l’été…", "“Hello,” she said.", "« Bonjour ! »", "¿Qué? ¡No!",
    "&quot;A&quot; &amp; B &lt;i&gt;", "&amp;lt;", "&amp;amp;quot;", "a<skipped>b", "<skip", "R&D", "AT&T's", "user@example.com",
    "http://example.com/a_b?c=1&d=2#e", "C:\\dir", "a~b^c`d{e}|f[g]", "#1 @2 *3 +4 =5 ;6 :7 !8 ?9", "tab\tand\u00a0no-break\u202fspaces",
    "a\u001cb\u001fc", "tail\u001c", "\u2028sep\u3000wide", "日本語のテキスト。", "数字3.14、終わり", "emoji 👩‍👩‍👧.", "e\u0301.e\u0301,1", "½.½", "٣.٤",
    "Mr. Smith went to Washington D.C. on Jan. 5, 2019.", "U.S.A.", "1.a", "a.1", "1.2.3", "1,2,a,3", "\u200b.\u200b", "x\r\ny", ".\n,",
]

# Hypothesis and its references; None where a stream has no reference for the sentence.
CORPORA = {
    "same": [("The cat sat on the mat.", ["The cat sat on the mat."])],
    "case counts": [("the cat sat on the mat.", ["The Cat sat on the mat."])],
    "clipped counts": [("the the the the the the the", ["The cat is on the mat.", "There is a cat on the mat."])],
    "two references": [("It is a guide to action which ensures that the military always obeys the commands of the party.",
                        ["It is a guide to action that ensures that the military will forever heed Party commands.",
                         "It is the guiding principle which guarantees the military forces always being under the command of the Party.",
                         "It is the practical guide for the army always to heed the directions of the party."])],
    "empty hypothesis": [("", ["The cat."])],
    "empty hypothesis among others": [("", ["The cat."]), ("A dog ran over the road.", ["A dog ran over that road."])],
    "empty reference": [("A dog.", [""])],
    "all empty": [("", [""])],
    "white space only": [(" \n", ["a b c d e"]), ("a b c d e", ["a b c d e"])],
    "one word": [("yes", ["yes"])],
    "three words": [("a b c", ["a b c"])],
    "no match": [("one two three four five", ["six seven eight nine ten"])],
    "one order matches": [("a b c d e", ["e c a x d"])],
    "two orders match": [("a b c d e f", ["a b x c d x e f"])],
    "three orders match": [("a b c d e f", ["a b c x d e f"])],
    "smoothing over short sentences": [("a b", ["a c"]), ("d e f g", ["d x y g"]), ("k", ["k"])],
    "closest length, tie goes to the shorter": [("a b c d e", ["a b c d e f g", "a b c", "q"])],
    "closest length, longer is nearer": [("a b c d e f", ["a b", "a b c d e f g"])],
    "too long": [("a b c d e f g h i j", ["a b c d e"])],
    "too short": [("a b c d", ["a b c d e f g h i j"])],
    "counts of references differ": [("a b c d e", ["a b c d x", "b c d e", "a a"]), ("k l m n", ["k l m o"]),
                                    ("Go now, please!", ["Please go now!", "Go now please!"])],
    "punctuation": [("Hello, world! It's 1,000.5 km (or so)...", ["Hello world! It's 1,000.5 km, or so."])],
    "entities": [("&quot;A &amp; B&quot; &lt;b&gt; said so", ['"A & B" <b> says so'])],
    "hyphens": [("A well-known 3-4 pre-\nfix of 2019-03-05", ["A well-known 3 - 4 prefix of 2019 - 03 - 05"])],
    "unicode quotes": [("Il a dit « C’est l’été » hier soir.", ["Il a dit “C’est l’été” hier soir."])],
    "french": [("Je pense que Tom n'a pas d'argent.", ["Je pense que Tom n'a pas d'argent du tout.", "À mon avis, Tom n'a pas d'argent."]),
               ("Où est-elle allée ?", ["Où est-elle ?", "Où est-elle partie ?"])],
    "spaceless script": [("これは本です。", ["これは本です。"]), ("a b c d e", ["a b c d f"])],
    "every text against itself": [(t, [t]) for t in TEXTS],
    "every text against the next": [(a, [b]) for a, b in zip(TEXTS, TEXTS[1:])],
}


def salad(rng, sentences, most):
    words = ("the a of to Tom Mary isn't it's 3 1,000 12.5 well-known cat dog runs ran slowly, (maybe) &amp; & &quot;so&quot; "
             "l'eau été “quoted” end. U.S. e.g. 50% $5 no. yes! what? a-b 7-8 …").split()
    corpus = []
    for _ in range(sentences):
        reference = rng.choices(words, k=rng.randrange(1, 18))
        hypothesis = list(reference)
        for _ in range(rng.randrange(0, 6)):
            at = rng.randrange(0, len(hypothesis) + 1)
            hypothesis[at:at + rng.randrange(0, 3)] = rng.choices(words, k=rng.randrange(0, 3))
        references = [reference]
        for _ in range(rng.randrange(0, most)):
            other = list(reference)
            rng.shuffle(other)
            references.append(other[:rng.randrange(1, len(other) + 1)])
        corpus.append((" ".join(hypothesis), [" ".join(r) for r in references]))
    return corpus


CORPORA["200 sentences, one reference"] = salad(random.Random(1), 200, 1)
CORPORA["200 sentences, up to four references"] = salad(random.Random(2), 200, 4)
for seed in range(3, 23):
    CORPORA[f"few sentences {seed}"] = salad(random.Random(seed), random.Random(seed).randrange(1, 5), 3)

out = {"sacrebleu": sacrebleu.__version__, "tokens": [{"text": t, "tokens": TOKENIZER(t.rstrip()).split()} for t in TEXTS], "corpora": []}
for name, corpus in CORPORA.items():
    most = max(len(references) for _, references in corpus)
    streams = [[references[i] if i < len(references) else None for _, references in corpus] for i in range(most)]
    score = METRIC.corpus_score([hypothesis for hypothesis, _ in corpus], streams)
    out["corpora"].append({
        "name": name, "hypotheses": [h for h, _ in corpus], "references": [r for _, r in corpus], "line": str(score),
        "score": score.score, "precisions": score.precisions, "bp": score.bp, "ratio": score.ratio,
        "hypothesis_length": score.sys_len, "reference_length": score.ref_len,
    })

path = pathlib.Path(__file__).with_name("bleu.json")
path.write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
