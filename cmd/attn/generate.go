package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/chat"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

type generateCommand struct {
	Model       string         `required:"" help:"Directory of a language model: config.json, safetensors files and a tokenizer." placeholder:"DIR"`
	MaxTokens   int            `help:"Maximum number of tokens to generate (default up to the maximum length of the model; for an encoder-decoder, 20 plus twice the number of input tokens)." placeholder:"N" want:"at least 1"`
	Temperature float64        `default:"0" help:"Sampling temperature; 0 always picks the most likely token." placeholder:"T" group:"Sampling" want:"at least 0"`
	TopK        int            `help:"Sample only from the K most likely tokens." placeholder:"K" group:"Sampling" want:"at least 1" needs:"temperature" excludes:"temperature=0"`
	TopP        float64        `help:"Sample only from the smallest set of tokens whose probabilities sum to P." placeholder:"P" group:"Sampling" want:"0 to 1" needs:"temperature" excludes:"temperature=0"`
	Seed        uint64         `default:"1" help:"Random seed." placeholder:"N" group:"Sampling"`
	Context     int            `help:"Maximum length of prompt and output together, in tokens (default from config.json)." placeholder:"N" group:"Model" want:"at least 1"`
	Weights     tensor.Numbers `default:"float32" help:"Number format of the weights in memory: float32; bfloat16, twice as fast, and exact for bfloat16 files; float16, slower than bfloat16; int8, the fastest, with an error of up to 1/254 of the largest weight in a row." placeholder:"NAME" group:"Model"`
	Chat        bool           `help:"Apply the model's chat template, with the prompt as the user's message." group:"Chat"`
	System      *string        `help:"System message at the start of the conversation." placeholder:"TEXT" group:"Chat" needs:"chat"`
	NoSpecial   bool           `help:"Do not add special tokens; for a prompt that already contains them." group:"Model" excludes:"chat"`
	Prompt      *string        `arg:"" optional:"" help:"Text to continue; without it, standard input as a whole, or with --chat each line of it as a message." stdin:""`
}

func (generateCommand) Help() string {
	return `Examples:

  attn generate --model SmolLM2-135M --max-tokens 50 "Attention is"
  attn generate --model gpt2 --temperature 0.8 --top-p 0.95 --seed 7 "Once upon a time"
  attn generate --model Llama-3.2-1B --max-tokens 200 < prompt.txt
  attn generate --model SmolLM2-135M-Instruct --chat --system "Be brief." "Who was Ada Lovelace?"

The output is streamed, without the prompt. Generation stops at an end token of
generation_config.json, or else of config.json. Other settings of generation_config.json
are ignored.

With --chat, attn formats the prompt with the model's chat template, as transformers'
apply_chat_template does: chat_template.jinja, or chat_template in tokenizer_config.json.
Special tokens in the prompt are treated as text. Without a prompt, each line of standard
input is the next message of one conversation. An answer also ends at the eos_token of the
tokenizer. A template with unsupported syntax is an error.`
}

func (cmd *generateCommand) sampling() models.Sampling {
	return models.Sampling{Temperature: cmd.Temperature, TopK: cmd.TopK, TopP: cmd.TopP, Seed: cmd.Seed}
}

func (cmd *generateCommand) Run(ctx context.Context, c console) error {
	m, err := load(c, models.Load, cmd.Model, models.Options{Tokens: cmd.Context, Weights: cmd.Weights})
	if err != nil {
		return err
	}
	if h := m.Head(); h == nil || h.Task != models.NextWord {
		return input.Errorf(cmd.Model, "is a %s model without a head for the %s, want a decoder or an encoder-decoder with one", m.Family.Name, models.NextWord)
	}
	t, err := m.Tokenizer()
	if err != nil {
		return err
	}
	if cmd.Chat {
		return cmd.converse(ctx, c, m, t)
	}
	name, text, err := cmd.prompt(c)
	if err != nil {
		return err
	}
	e, err := t.Encode(text, tokenizer.Options{NoSpecial: cmd.NoSpecial, NoTruncation: true, NoPadding: true})
	if err == nil {
		err = cmd.fits(m, e)
	}
	if err != nil {
		return &input.Error{Name: name, Err: err}
	}
	if template, _, _ := chat.Template(cmd.Model); template != "" && !cmd.NoSpecial {
		c.say("%s has a chat template that is not applied to the prompt; use --chat to apply it", template)
	}
	_, err = cmd.write(ctx, c, m, nil, t, e, nil)
	return err
}

// fits returns an error if a prompt is too long for the model.
func (cmd *generateCommand) fits(m *models.Model, e *tokenizer.Encoding) error {
	if err := m.Sizes().Check(models.BatchOf(e)); err != nil {
		return fmt.Errorf("the prompt has %w", err)
	}
	return nil
}

// write prints the continuation of a prompt up to one of the end tokens, and returns it. If ends is
// nil, the end tokens of the model are used. With a session, the prompt continues its conversation.
func (cmd *generateCommand) write(ctx context.Context, c console, m *models.Model, s *models.Session, t *tokenizer.Tokenizer, e *tokenizer.Encoding, ends []int) (string, error) {
	generate := m.Generate
	if s != nil {
		generate = s.Generate
	}
	tokens, err := generate(e.IDs, models.Generation{Sampling: cmd.sampling(), Tokens: cmd.most(m, len(e.IDs)), Ends: ends})
	if err != nil {
		return "", err
	}
	w := &chat.Printer{Out: c.out, Plain: !isTerminal(c.out)}
	stream := t.Target().Stream() // t itself, unless t has separate source and target vocabularies
	z := m.Sizes()
	for _, id := range e.IDs {
		if z.Decoder != nil || cmd.Chat { // the output is a new text
			break
		}
		stream.Next(id) // a token may decode differently at the start of a text
	}
	speed := chat.NewPace(len(e.IDs))
	for id := range tokens {
		speed.Token()
		w.Print(stream.Next(id))
		if w.Err != nil || ctx.Err() != nil {
			break
		}
	}
	if s != nil {
		speed.Prompt = s.Fresh()
	}
	w.Print(stream.Rest())
	answer := w.Text.String()
	w.Print("\n")
	if w.Err != nil {
		return answer, w.Err
	}
	fmt.Fprintln(c.err, speed)
	if most := z.Positions; most > 0 && z.Decoder == nil && len(e.IDs)+speed.Tokens > most && ctx.Err() == nil {
		fmt.Fprintf(c.err, "stopped at %d tokens, the maximum length of the model\n", most)
	}
	if ctx.Err() != nil {
		return answer, interrupted{fmt.Sprintf("interrupted after %d tokens", speed.Tokens)}
	}
	return answer, nil
}

// prompt returns the prompt and the name of its source for messages.
func (cmd *generateCommand) prompt(c console) (name, text string, err error) {
	if cmd.Prompt != nil {
		return "argument", *cmd.Prompt, nil
	}
	c.invite("type a text to continue; " + endOfInput() + " ends it")
	data, err := io.ReadAll(io.LimitReader(c.in, longestPrompt+1))
	switch {
	case err != nil:
		return "", "", err
	case len(data) > longestPrompt:
		return "", "", input.Errorf("standard input", "more than %d bytes, want a prompt", longestPrompt)
	}
	return "standard input", strings.TrimRight(string(data), "\r\n"), nil
}

// longestPrompt is the maximum size of a prompt in bytes, beyond the context of any model.
const longestPrompt = 1 << 25

// most returns the maximum number of tokens to generate after a prompt. An encoder-decoder may have
// no maximum length, and could generate without end.
func (cmd *generateCommand) most(m *models.Model, prompt int) int {
	if cmd.MaxTokens == 0 && m.Sizes().Decoder != nil {
		return 2*prompt + 20 // the limit of attn translate
	}
	return cmd.MaxTokens
}

// converse answers the prompt, or each line of standard input.
func (cmd *generateCommand) converse(ctx context.Context, c console, m *models.Model, t *tokenizer.Tokenizer) error {
	talk, err := chat.New(cmd.Model, t, max(t.Size(), m.Sizes().Vocabulary))
	if err != nil {
		return err
	}
	ends, err := m.EndTokens()
	if err != nil {
		return err
	}
	if end, ok := talk.End(); ok {
		ends = append(slices.Clone(ends), end)
	}
	if cmd.System != nil {
		talk.Say("system", *cmd.System)
	}
	var session *models.Session // nil for an encoder-decoder, which encodes the whole source at once
	if m.Sizes().Decoder == nil {
		if session, err = m.NewSession(attn.CacheConfig{}); err != nil {
			return err
		}
	}
	turn := func(name string, line int, said string) error {
		talk.Say("user", said)
		e, err := talk.Encode()
		if err == nil {
			err = cmd.fits(m, e)
		}
		if err != nil {
			if errors.As(err, new(*input.Error)) {
				return err
			}
			return &input.Error{Name: name, Line: line, Err: err}
		}
		answer, err := cmd.write(ctx, c, m, session, t, e, ends)
		talk.Say("assistant", answer)
		return err
	}
	if cmd.Prompt != nil {
		return turn("argument", 0, *cmd.Prompt)
	}
	c.invite("type messages, one per line; " + endOfInput() + " ends the conversation")
	lines := bufio.NewScanner(c.in)
	lines.Buffer(nil, longestPrompt)
	line := 1
	for ; lines.Scan(); line++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := turn("standard input", line, strings.TrimSuffix(lines.Text(), "\r")); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return &input.Error{Name: "standard input", Line: line, Err: fmt.Errorf("line longer than %d bytes", longestPrompt)}
	} else if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	return nil
}
