package flags

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

type tested struct {
	Model   string        `either:"source" placeholder:"DIR"`
	Weights []string      `either:"source" placeholder:"FILE" sep:"none"`
	Rope    bool          ``
	Base    *float64      `want:"more than 1" needs:"rope"`
	Size    *int          `want:"2 to 64 and at most 8" needs:"rope,base"`
	Offset  int           `needs:"rope|size" excludes:"kind=cross"`
	Kind    string        `default:"any"`
	Time    time.Duration `want:"0 to 1h"`
	Window  []int         `want:"at least 0"`
	Scale   float64       `want:"a finite number"`
	Pair    *string       `filled:""`
	PNG     string        `name:"png" placeholder:"FILE" writes:"-"`
	SVG     string        `name:"svg" placeholder:"FILE" writes:"-"`
	CSV     string        `name:"csv" placeholder:"FILE" writes:"-"`
	Text    *string       `arg:"" optional:"" needs:"model" excludes:"offset"`
}

func (*tested) Validate(parsed *kong.Context) error { return Check(parsed) }

type testedCommands struct {
	Do tested `cmd:""`
}

func (*testedCommands) Validate(parsed *kong.Context) error { return Check(parsed) }

func TestCheck(t *testing.T) {
	for line, want := range map[string]string{
		"--model m":                                  "",
		"--model m --weights w":                      "want either --model or --weights",
		"":                                           "want either --model or --weights",
		"--weights w hello":                          "a text requires --model",
		"--model m --rope --offset 3 hello":          "a text and --offset cannot be used together",
		"--model m --base 2":                         "--base requires --rope",
		"--model m --base 2 --rope=false":            "--base requires --rope",
		"--model m --base 1 --rope":                  "--base 1, want more than 1",
		"--model m --base NaN --rope":                "--base NaN, want more than 1",
		"--model m --base Inf --rope":                "--base +Inf, want more than 1",
		"--model m --rope --size 4":                  "--size requires --rope and --base",
		"--model m --rope --base 2 --size 4":         "",
		"--model m --rope --base 2 --size 9":         "--size 9, want 2 to 64 and at most 8",
		"--model m --offset 3":                       "--offset requires --rope or --size",
		"--model m --rope --offset=-3":               "",
		"--model m --rope --offset 3 --kind cross":   "--offset and --kind cross cannot be used together",
		"--model m --rope --offset 3 --kind encoder": "",
		"--model m --time 1h":                        "",
		"--model m --time 61m":                       "--time 1h1m0s, want 0 to 1h",
		"--model m --window=3,-1":                    "--window 3,-1, want at least 0",
		"--model m --window=":                        "--window needs a value",
		"--model m --scale Inf":                      "--scale +Inf, want a finite number",
		"--model m --pair=":                          "--pair is empty, want a text",
		"--model=":                                   "--model is empty, want a path",
		"--weights w --weights=":                     "--weights is empty, want a path",
	} {
		parser := kong.Must(&testedCommands{}, kong.Exit(func(int) { t.Fatal("exit") }))
		_, err := parser.Parse(append([]string{"do"}, strings.Fields(line)...))
		got := ""
		if err != nil {
			got = strings.TrimPrefix(Plain(err).Error(), "do: ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// A flag that writes a format cannot name a file of another one.
func TestFormats(t *testing.T) {
	for line, want := range map[string]string{
		"--model x.png":            "",
		"--model m --png x.png":    "",
		"--model m --png x.PNG":    "",
		"--model m --png x":        "",
		"--model m --svg run.3":    "",
		"--model m --csv -":        "",
		"--model m --csv x.tsv":    "",
		"--model m --png x.gif":    "--png x.gif, want a name that ends in .png; other formats: --svg and --csv",
		"--model m --csv 'a'.JSON": "--csv ''\\''a'\\''.JSON', want a name that ends in .csv; other formats: --png and --svg",
	} {
		parser, err := kong.New(&testedCommands{})
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.Parse(append([]string{"do"}, strings.Fields(line)...))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := CheckFormats(parsed); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// A flag is required unless another one is given.
func TestUnless(t *testing.T) {
	for line, want := range map[string]string{
		"":                    "missing flags: --data=FILE",
		"--per-line=false":    "missing flags: --data=FILE",
		"--per-line":          "",
		"--data x --per-line": "",
		"--data x":            "",
	} {
		var cmd struct {
			Do struct {
				Data    string `unless:"per-line" placeholder:"FILE"`
				PerLine bool
			} `cmd:""`
		}
		parsed, err := kong.Must(&cmd).Parse(append([]string{"do"}, strings.Fields(line)...))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := Check(parsed); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestHolds(t *testing.T) {
	for condition, numbers := range map[string][2][]float64{
		"at least 1":      {{1, 2, 1e300}, {0.5, -1, math.NaN(), math.Inf(1)}},
		"at most 1":       {{1, 0, -5}, {1.5, math.Inf(-1)}},
		"more than 0":     {{1e-300}, {0, -1}},
		"0 to 1":          {{0, 0.5, 1}, {-0.1, 1.1}},
		"a finite number": {{0, -7}, {math.NaN(), math.Inf(1), math.Inf(-1)}},
	} {
		for i, list := range numbers {
			if slices.ContainsFunc(list, func(x float64) bool { return holds(condition, x) != (i == 0) }) {
				t.Errorf("%s of %v, want %v", condition, list, i == 0)
			}
		}
	}
}

func TestJoinNegative(t *testing.T) {
	for line, want := range map[string]string{
		"apply --offset -3 --scale -0.5": "apply --offset=-3 --scale=-0.5",
		"map --layer -1 -x":              "map --layer=-1 -x",
		"translate -- --beam -3":         "translate -- --beam -3",
	} {
		if got := strings.Join(JoinNegative(strings.Fields(line)), " "); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
