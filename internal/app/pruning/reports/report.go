// Package reports has the results of attn prune and attn heads, and writes them as JSON, as text for
// a terminal, and as a page with charts. It does not run models.
package reports

import (
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/prune"
)

// Number is a number in JSON; NaN, for a value that was not measured, is written as null.
type Number = strictjson.Number

// NaN is the Number of a value that was not measured.
var NaN = strictjson.NaN

// Report is the result of an experiment. It is stored as JSON and drawn as a page. Percentages are
// 0 to 100, losses are in Settings.LossUnit, and times are in milliseconds unless a field says
// otherwise.
type Report struct {
	Version  string   `json:"version"` // of attn
	Started  string   `json:"started"` // RFC 3339
	Seconds  float64  `json:"seconds"` // duration of the experiment
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

// Settings are the options of the experiment.
type Settings struct {
	Methods   []string `json:"methods"`
	Goal      string   `json:"goal"`                  // for people: "keep 36 heads", "lose at most 1% of BLEU"
	Speed     float64  `json:"speed,omitempty"`       // the goal, if it is a speed-up
	Metric    string   `json:"metric"`                // to preserve: "BLEU", "loss"
	Unit      string   `json:"metric_unit,omitempty"` // of Metric
	Least     float64  `json:"metric_least,omitempty"`
	Lower     bool     `json:"lower_is_better,omitempty"` // Metric is a loss
	LossUnit  string   `json:"loss_unit"`                 // "nats per token"
	Normalize bool     `json:"normalize"`                 // scores divided by the norm of their layer
	Kinds     []string `json:"kinds,omitempty"`           // of attention that heads were removed from; empty: all
	Empty     bool     `json:"empty"`                     // layers may lose all heads
	Even      bool     `json:"even,omitempty"`            // all layers of a kind lose the same number of heads
	Step      int      `json:"step"`                      // heads removed before scoring again; 0: scored once
	// Compensate is the compensation for removed heads; empty: none.
	Compensate string  `json:"compensate,omitempty"`
	FineTune   int     `json:"finetune"`              // training steps of the pruned model; 0: none
	Tune       string  `json:"tune,omitempty"`        // what they train: "all", or "maps" for output maps, biases and norms
	Rate       float64 `json:"rate,omitempty"`        // of these steps, peak
	Smoothing  float32 `json:"smoothing,omitempty"`   // of their labels
	TrainData  string  `json:"train_data,omitempty"`  // empty: the scoring part
	Trained    int     `json:"train_pairs,omitempty"` // pairs or lines of it that are not used for measuring
	Orders     int     `json:"orders"`                // random orders
	Resamples  int     `json:"resamples"`             // of the bootstrap
	Seed       uint64  `json:"seed"`
}

// Model identifies the model that was pruned.
type Model struct {
	Dir        string `json:"dir"`
	SHA256     string `json:"sha256"` // of the weights file
	Arch       string `json:"arch"`
	Task       string `json:"task,omitempty"`
	Heads      int    `json:"heads"`
	Parameters int    `json:"parameters"`
}

// Data identifies the pairs or texts. They are split into three parts that share no source.
type Data struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Items  string `json:"items"` // unit of the parts: "sources", "texts"
	Score  int    `json:"score"` // size of the scoring part
	Select int    `json:"select"`
	Report int    `json:"report"`
}

// Machine is the machine on which speed was measured.
type Machine struct {
	OS      string `json:"os"`
	CPU     string `json:"cpu"`
	Threads int    `json:"threads"`
	Kernels string `json:"kernels"` // such as "avx512"
	Go      string `json:"go"`
}

// Layer is an attention layer with the heads that were kept.
type Layer struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"` // encoder, decoder or cross
	Index int    `json:"index"`
	Heads int    `json:"heads"`
	Kept  []int  `json:"kept"`
	// Measures has the measures of each head by name, if they were requested.
	Measures map[string][]Number `json:"measures,omitempty"`
}

// Scores has the importance of all heads by one method.
type Scores struct {
	Method  string     `json:"method"`
	Values  [][]Number `json:"values"`  // by layer and head; null if not measured
	Passes  float64    `json:"passes"`  // forward passes over the scoring part; a backward pass counts as 2
	Seconds float64    `json:"seconds"` // shared by methods that need the same passes
	// Rank is Spearman's correlation with leave-one-out.
	Rank Number `json:"rank"`
}

// Point is a model with some heads left, evaluated on the reporting part.
type Point struct {
	Left   int    `json:"left"`
	Metric Number `json:"metric"`
	Loss   Number `json:"loss"`
	KL     Number `json:"kl"` // divergence from the whole model's predictions, nats per token
	// Low and High are the 95% interval of the difference of the metric from the whole model's, by
	// paired bootstrap.
	Low  Number `json:"low"`
	High Number `json:"high"`
}

// Curve is the result of removing heads in one order, from the whole model to the smallest one.
type Curve struct {
	Name   string  `json:"name"` // of the method; "gradient, reversed" for the most important first
	Points []Point `json:"points"`
}

// Band is the result of many random orders.
type Band struct {
	Orders int         `json:"orders"`
	Points []BandPoint `json:"points"`
}

// BandPoint is the spread over the orders with the same number of heads left.
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

// Result is the pruned model.
type Result struct {
	Method  string       `json:"method,omitempty"`
	Removed []prune.Head `json:"removed"`        // in the order of removal
	Left    int          `json:"left,omitempty"` // 0 until the model is made
	Before  Quality      `json:"before"`
	After   Quality      `json:"after"`
	// Pruned is the quality before compensation and fine-tuning; nil if there was none.
	Pruned *Quality `json:"pruned,omitempty"`
	// Control is the quality of the whole model after the same fine-tuning, which may improve it
	// too; nil if there was none.
	Control *Quality `json:"control,omitempty"`
	// Low and High are the 95% interval of After − Before in the metric.
	Low        Number `json:"low"`
	High       Number `json:"high"`
	Difference Number `json:"logit_difference"` // largest, between the compact and the masked model
	// Compact and Masked are the directories of the models, and Page is the file of the HTML report;
	// empty until they are written.
	Compact string `json:"compact,omitempty"`
	Masked  string `json:"masked,omitempty"`
	Page    string `json:"page,omitempty"`
	// Of a pretrained model: what can load the compact form, or why there is none.
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

// Speed is the time of one kind of work before and after pruning, measured alternately.
type Speed struct {
	Work    string `json:"work"` // "translate", "encode", "read", "decode one token", "attention layers"
	Batch   int    `json:"batch"`
	Length  int    `json:"length"` // tokens of source and target, or keys of a decoder's step
	Before  Number `json:"before"` // ms, mean over the pairs of runs whose ratios are in the middle half
	After   Number `json:"after"`
	Ratio   Number `json:"ratio"` // Before/After
	Low     Number `json:"low"`   // 95% interval of the ratio
	High    Number `json:"high"`
	Bound   Number `json:"bound"`   // by arithmetic: operations before divided by operations after
	Repeats int    `json:"repeats"` // pairs of runs
}
