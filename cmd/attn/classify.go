package main

import (
	"context"
	"fmt"

	"github.com/attn-go/attn/internal/app/chat"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/shards"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
)

type classifyCommand struct {
	Model  string `required:"" help:"Directory of a pretrained model that classifies texts." placeholder:"DIR"`
	Pairs  bool   `help:"A line is a pair, a JSON array of two texts."`
	Strict bool   `help:"Stop at the first line that cannot be classified."`
	formatFlag
	File string `arg:"" optional:"" help:"Text file with one text per line; without it, standard input." placeholder:"FILE" stdin:""`
}

func (classifyCommand) Help() string {
	return `Examples:

  attn classify --model distilbert-sst2 reviews.txt > classes.jsonl
  attn classify --model nli-deberta --pairs premises.jsonl

A line of the output has the most probable label, its probability, and the logits of all
labels: {"label":"POSITIVE","probability":0.98,"logits":[-2.1,1.9]}. Probabilities are the
softmax of the logits or, for a model with one label or with labels that do not exclude
each other (problem_type in config.json), the sigmoid of each. A model with problem_type
regression has logits only.

The output has one line per input line, in the same order. A line that cannot be classified
becomes {"error": "…"}; with --strict, it ends the run. Longer texts are truncated, of a
pair the longer one first. See docs/scale.md for details.`
}

func (cmd *classifyCommand) Run(ctx context.Context, c console) error {
	return runLines(ctx, c, cmd, cmd.File, "type texts to classify, one per line")
}

func (cmd *classifyCommand) streams() bool { return cmd.File == "" }

func (cmd *classifyCommand) model() (string, bool) { return cmd.Model, true }

func (cmd *classifyCommand) stream(c console) (shards.Stream, error) {
	m, err := loadClassifier(c, cmd.Model, cmd.formatFlag)
	if err != nil {
		return nil, err
	}
	f := texts.Classes(m, cmd.Pairs)
	f.Strict = cmd.Strict
	return newStream(f, c), nil
}

type rerankCommand struct {
	Model   string   `required:"" help:"Directory of a pretrained cross-encoder, or of a model of late interaction." placeholder:"DIR"`
	Answers []string `help:"Tokens with which a decoder answers, such as yes,no, if its files do not name them." placeholder:"TOKEN"`
	Scored  string   `help:"Instead of ranking, measure how well scores rank the pairs of this file: two texts and a number in each line, with tabs between them." placeholder:"FILE" excludes:"file,strict"`
	Strict  bool     `help:"Stop at the first line that cannot be ranked."`
	formatFlag
	File string `arg:"" optional:"" help:"JSON lines with a query and texts; without it, standard input." placeholder:"FILE" stdin:""`
}

func (rerankCommand) Help() string {
	return `Examples:

  attn rerank --model ms-marco-MiniLM-L6-v2 found.jsonl > ranked.jsonl
  attn rerank --model Qwen3-Reranker-0.6B --format bfloat16 found.jsonl
  attn rerank --model Qwen3-Reranker-4B --answers yes,no found.jsonl
  attn rerank --model colbertv2.0 found.jsonl
  attn rerank --model stsb-roberta-base --scored stsb-test.tsv

A line of the input has a query and the texts that a search has found:

  {"query": "who keeps the cat?", "texts": ["The dog sleeps.", "Ann has a cat."]}

A line of the output has the numbers of the texts, from 0, and their scores, best first:

  [{"text":1,"score":5.2},{"text":0,"score":-9.8}]

The score is the logit of a model with one label or, for a decoder with a chat template for
a query and a document, the logit of a positive answer minus that of a negative one: of the
tokens of a LogitScore in modules.json, or of --answers. A model of late interaction, such
as ColBERT, compares each token of the query with each of a text: the score is the sum of
the largest products. Texts with equal scores keep their order. --scored writes Spearman's rank correlation × 100 of the scores and the numbers of a
file.
A line that cannot be ranked becomes {"error": "…"}; with --strict, it ends the run. Longer
pairs are truncated, the longer text first. See docs/scale.md for details.`
}

func (cmd *rerankCommand) Run(ctx context.Context, c console) error {
	if cmd.Scored != "" {
		return cmd.measure(ctx, c)
	}
	return runLines(ctx, c, cmd, cmd.File, "type JSON lines with a query and texts")
}

func (cmd *rerankCommand) streams() bool { return cmd.File == "" && cmd.Scored == "" }

func (cmd *rerankCommand) model() (string, bool) { return cmd.Model, true }

func (cmd *rerankCommand) stream(c console) (shards.Stream, error) {
	s, err := cmd.scorer(c)
	if err != nil {
		return nil, err
	}
	f := s.Ranks()
	f.Strict = cmd.Strict
	return newStream(f, c), nil
}

// scorer loads the model.
func (cmd *rerankCommand) scorer(c console) (s texts.Scorer, err error) {
	if !models.IsLate(cmd.Model) {
		m, err := loadClassifier(c, cmd.Model, cmd.formatFlag, cmd.Answers...)
		if err != nil {
			return s, err
		}
		return texts.NewScorer(m)
	}
	if cmd.Answers != nil {
		return s, flags.Errorf("--answers: %s compares vectors of tokens, want none", quote.Shell(cmd.Model))
	}
	e, err := load(c, models.LoadLateEmbedder, cmd.Model, cmd.options())
	if err != nil {
		return s, err
	}
	return texts.LateScorer(e), nil
}

// measure writes the rank correlation of the model's scores with those of a file.
func (cmd *rerankCommand) measure(ctx context.Context, c console) error {
	lines, err := tasks.Scored(cmd.Scored)
	if err != nil {
		return err
	}
	s, err := cmd.scorer(c)
	if err != nil {
		return err
	}
	pairs := make([][]string, len(lines))
	want := make([]float64, len(lines))
	for i, l := range lines {
		pairs[i], want[i] = l.Columns[:2], l.Value
	}
	got, err := s.Scores(ctx, pairs)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "Spearman  %.2f\npairs     %d\n", 100*prune.Spearman(got, want), len(lines))
	return err
}

// loadClassifier loads a model with a head for texts, or a decoder with the tokens of its answers.
func loadClassifier(c console, dir string, f formatFlag, answers ...string) (*models.Classifier, error) {
	m, err := load(c, models.Load, dir, f.options())
	if err != nil {
		return nil, err
	}
	classifier, err := models.NewClassifier(m, answers...)
	if err != nil || m.Head().Task != models.NextWord {
		return classifier, err
	}
	t, err := m.Tokenizer()
	if err != nil {
		return nil, err
	}
	talk, err := chat.New(dir, t)
	if err != nil {
		return nil, err
	}
	if classifier.Prefix != "" {
		talk.Say("system", classifier.Prefix)
	}
	classifier.Prompt = talk.Pair
	return classifier, nil
}
