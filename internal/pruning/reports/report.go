// Package reports holds what attn prune and attn heads find, and shows it: as JSON, as
// text for a terminal, and as a page with charts. It runs no model.
package reports

import (
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/prune"
)

// Number is a number in JSON; NaN, what was not measured, is null there.
type Number = strictjson.Number

// NaN is the Number of what was not measured.
var NaN = strictjson.NaN

// Report is all that an experiment has found, in the form in which it is stored
// as JSON and drawn as a page. Shares and metrics in per cent are 0 to 100, losses
// in Settings.LossUnit, times in milliseconds unless they are named otherwise.
type Report struct {
	Version  string   `json:"version"` // of attn
	Started  string   `json:"started"` // RFC 3339
	Seconds  float64  `json:"seconds"` // that it took
	Settings Settings `json:"settings"`
	Model    Model    `json:"model"`
	Data     Data     `json:"data"`
	Machine  Machine  `json:"machine"`
	Layers   []Layer  `json:"layers"`
	Scores   []Scores `json:"scores"`
	Curves   []Curve  `json:"curves"`
	Random   Band     `json:"random"`
	Result   Result   `json:"result"`
	Speed    []Speed  `json:"speed"`
}

// Settings are what the experiment was asked for.
type Settings struct {
	Methods   []string `json:"methods"`
	Goal      string   `json:"goal"`                  // for people: "keep 36 heads", "lose at most 1% of BLEU"
	Speed     float64  `json:"speed,omitempty"`       // the goal, if it is one of speed: times as fast
	Metric    string   `json:"metric"`                // that is to stay: "BLEU", "loss"
	Unit      string   `json:"metric_unit,omitempty"` // of it
	Least     float64  `json:"metric_least,omitempty"`
	Lower     bool     `json:"lower_is_better,omitempty"` // it is the loss
	LossUnit  string   `json:"loss_unit"`                 // "nats per token"
	Normalize bool     `json:"normalize"`                 // scores divided by the norm of their layer
	Kinds     []string `json:"kinds,omitempty"`           // of attention that heads were taken from; none: all
	Empty     bool     `json:"empty"`                     // layers may lose all heads
	Even      bool     `json:"even,omitempty"`            // layers lose equally many heads
	Step      int      `json:"step"`                      // heads removed before scoring again; 0: scored once
	FineTune  int      `json:"finetune"`                  // training steps after each removal; 0: none
	Rate      float64  `json:"rate,omitempty"`            // of these steps, at most
	Smoothing float32  `json:"smoothing,omitempty"`       // of their labels
	TrainData string   `json:"train_data,omitempty"`      // empty: the scoring part
	Trained   int      `json:"train_pairs,omitempty"`     // pairs, or lines, of them that are not measured on
	Orders    int      `json:"orders"`                    // random orders
	Resamples int      `json:"resamples"`                 // of the bootstrap
	Seed      uint64   `json:"seed"`
}

// Model identifies the model that was pruned.
type Model struct {
	Dir        string `json:"dir"`
	SHA256     string `json:"sha256"` // of its weights' file
	Arch       string `json:"arch"`
	Task       string `json:"task,omitempty"` // of a pretrained model
	Heads      int    `json:"heads"`
	Parameters int    `json:"parameters"`
}

// Data identifies the pairs or texts, cut into three parts that share no source.
type Data struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Pairs  int    `json:"pairs,omitempty"` // that were used
	Items  string `json:"items"`           // what the parts are counted in: "sources", "texts"
	Score  int    `json:"score"`           // of the part that scores
	Select int    `json:"select"`
	Report int    `json:"report"`
}

// Machine is what the speed was measured on.
type Machine struct {
	OS      string `json:"os"`
	CPU     string `json:"cpu"`
	Threads int    `json:"threads"`
	Kernels string `json:"kernels"` // such as "avx512"
	Go      string `json:"go"`
}

// Layer is an attention layer and which of its heads were kept.
type Layer struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"` // encoder, decoder or cross
	Index int    `json:"index"`
	Heads int    `json:"heads"`
	Kept  []int  `json:"kept"`
	// Measures of each head, by name, where they were asked for.
	Measures map[string][]Number `json:"measures,omitempty"`
}

// Scores are the importance of all heads by one method.
type Scores struct {
	Method  string     `json:"method"`
	Values  [][]Number `json:"values"`  // by layer and head; null where it was not measured
	Passes  float64    `json:"passes"`  // over the scoring part, forward; backward counts 2
	Seconds float64    `json:"seconds"` // shared by methods that need the same passes
	// Rank is Spearman's correlation with leave-one-out.
	Rank Number `json:"rank"`
}

// Point is a model with some heads left, measured on the reporting part.
type Point struct {
	Left   int    `json:"left"`
	Metric Number `json:"metric"`
	Loss   Number `json:"loss"`
	KL     Number `json:"kl"` // from the whole model's predictions, nats per token
	// Low and High are the 95% interval of the difference of the metric from
	// the whole model's, by paired bootstrap.
	Low  Number `json:"low"`
	High Number `json:"high"`
}

// Curve is what happens as heads go in one order; points run from the whole
// model to the smallest.
type Curve struct {
	Name   string  `json:"name"` // of the method; "gradient, reversed" for the most important first
	Points []Point `json:"points"`
}

// Band is what many random orders do.
type Band struct {
	Orders int         `json:"orders"`
	Points []BandPoint `json:"points"`
}

// BandPoint is the spread over the orders with so many heads left.
type BandPoint struct {
	Left   int    `json:"left"`
	Metric Spread `json:"metric"`
	Loss   Spread `json:"loss"`
	KL     Spread `json:"kl"`
}

// Spread describes some numbers.
type Spread struct {
	Mean Number `json:"mean"`
	Low  Number `json:"low"`  // 2.5%
	High Number `json:"high"` // 97.5%
	Min  Number `json:"min"`
	Max  Number `json:"max"`
}

// Result is the model that was made.
type Result struct {
	Method  string       `json:"method,omitempty"`
	Removed []prune.Head `json:"removed"`        // in the order in which they went
	Left    int          `json:"left,omitempty"` // nothing until the model is made
	Before  Quality      `json:"before"`
	After   Quality      `json:"after"`
	// Pruned is After without the fine-tuning; nil if there was none.
	Pruned *Quality `json:"pruned,omitempty"`
	// Control is the whole model after as much fine-tuning, which it may gain from
	// too; nil if there was none.
	Control *Quality `json:"control,omitempty"`
	// Low and High are the 95% interval of After − Before in the metric.
	Low        Number `json:"low"`
	High       Number `json:"high"`
	Difference Number `json:"logit_difference"` // largest, between the compact and the masked model
	// Compact and Masked are the directories of the models, and Page is the file of
	// this report for people; empty until they are written.
	Compact string `json:"compact,omitempty"`
	Masked  string `json:"masked,omitempty"`
	Page    string `json:"page,omitempty"`
	// Of a pretrained model: what loads the compact form, or why there is none.
	Loads     string `json:"loads,omitempty"`
	NoCompact string `json:"no_compact,omitempty"`
}

// Quality describes a model on the reporting part.
type Quality struct {
	Parameters int    `json:"parameters,omitempty"`
	Metric     Number `json:"metric"`
	Loss       Number `json:"loss"`
	KL         Number `json:"kl"`
	// Others are further metrics.
	Others []Named `json:"others,omitempty"`
}

// Unknown is the quality of a model that was not measured.
func Unknown() Quality { return Quality{Metric: NaN, Loss: NaN, KL: NaN} }

// Named is the value of a metric.
type Named struct {
	Name  string `json:"name"`
	Unit  string `json:"unit,omitempty"`
	Value Number `json:"value"`
}

// other returns the value of a further metric.
func (q Quality) other(name string) Number {
	for _, n := range q.Others {
		if n.Name == name {
			return n.Value
		}
	}
	return NaN
}

// Speed is the time of one kind of work, before and after, measured in turns.
type Speed struct {
	Work    string `json:"work"` // "translate", "encode", "read", "decode one token", "attention layers"
	Batch   int    `json:"batch"`
	Length  int    `json:"length"` // tokens of source and target, or keys of a decoder's step
	Before  Number `json:"before"` // ms, mean over the pairs whose ratios are in the middle half
	After   Number `json:"after"`
	Ratio   Number `json:"ratio"` // Before/After
	Low     Number `json:"low"`   // 95% interval of the ratio
	High    Number `json:"high"`
	Bound   Number `json:"bound"`   // what the arithmetic allows: operations before over those after
	Repeats int    `json:"repeats"` // pairs of runs
}
