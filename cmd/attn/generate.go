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
	Model       string         `required:"" help:"Directory of a model that predicts the next token: config.json, safetensors files and a tokenizer." placeholder:"DIR"`
	MaxTokens   int            `help:"Most tokens to write (default as many as the model takes; for an encoder-decoder 20 and two for each that it reads)." placeholder:"N" want:"at least 1"`
	Temperature float64        `default:"0" help:"Divides the scores before a token is drawn; 0 takes the best one." placeholder:"T" group:"How tokens are chosen" want:"at least 0"`
	TopK        int            `help:"Draw from the K best tokens only." placeholder:"K" group:"How tokens are chosen" want:"at least 1" needs:"temperature" excludes:"temperature=0"`
	TopP        float64        `help:"Draw only from the fewest tokens whose probabilities sum to P." placeholder:"P" group:"How tokens are chosen" want:"0 to 1" needs:"temperature" excludes:"temperature=0"`
	Seed        uint64         `default:"1" help:"Seed of the random numbers." placeholder:"N" group:"How tokens are chosen"`
	Context     int            `help:"Tokens of prompt and text together (default as many as config.json says)." placeholder:"N" group:"How the model is run" want:"at least 1"`
	Weights     tensor.Numbers `default:"float32" help:"Numbers in which weights are held: float32; bfloat16, twice as fast, exact for files of that type; float16, slower than bfloat16; int8, faster still, each with an error of up to 1/254 of the largest in its row." placeholder:"NAME" group:"How the model is run"`
	Chat        bool           `help:"Put the prompt into the chat template of the model, as what a user says." group:"Chats"`
	System      *string        `help:"What the system says first." placeholder:"TEXT" group:"Chats" needs:"chat"`
	NoSpecial   bool           `help:"Leave out the tokens that the model wants around a text, for a prompt that has them." group:"How the model is run" excludes:"chat"`
	Prompt      *string        `arg:"" optional:"" help:"Text to continue; without it, all of standard input, or with --chat each line of it." stdin:""`
}

func (generateCommand) Help() string {
	return `Examples:

  attn generate --model SmolLM2-135M --max-tokens 50 "Attention is"
  attn generate --model gpt2 --temperature 0.8 --top-p 0.95 --seed 7 "Once upon a time"
  attn generate --model Llama-3.2-1B --max-tokens 200 < prompt.txt
  attn generate --model SmolLM2-135M-Instruct --chat --system "Be brief." "Who was Ada Lovelace?"

The text is printed as it comes, without the prompt, until one of the model's end tokens:
those of generation_config.json, or else of config.json. Other settings of
generation_config.json are not used.

With --chat the prompt is what a user says to a model that was tuned for conversations, and
the template of its directory puts it into the form that it knows: chat_template.jinja, or
chat_template in tokenizer_config.json, as transformers' apply_chat_template does. Special
tokens within the prompt are text there. Without a prompt each line of standard input is a
turn of one conversation, which is answered. An answer also ends at the eos_token of the
tokenizer. A template that asks for what attn does not know is refused.`
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
		c.say("%s has a chat template, which the prompt is taken without; --chat applies it", template)
	}
	_, err = cmd.write(ctx, c, m, nil, t, e, nil)
	return err
}

// fits returns an error unless a model takes a prompt.
func (cmd *generateCommand) fits(m *models.Model, e *tokenizer.Encoding) error {
	if err := m.Sizes().Check(models.BatchOf(e)); err != nil {
		return fmt.Errorf("the prompt has %w", err)
	}
	return nil
}

// write prints what follows a prompt, until one of the ends, and returns it. Nil ends are
// those of the model, and a session is nil unless the prompt goes on with it.
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
	stream := t.Target().Stream() // of t itself but for a translator
	z := m.Sizes()
	for _, id := range e.IDs {
		if z.Decoder != nil || cmd.Chat { // whose text begins anew
			break
		}
		stream.Next(id) // what follows may be written otherwise than at the beginning of a text
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
		fmt.Fprintf(c.err, "ended at %d tokens, which is as many as the model takes\n", most)
	}
	if ctx.Err() != nil {
		return answer, interrupted{fmt.Sprintf("interrupted after %d tokens", speed.Tokens)}
	}
	return answer, nil
}

// prompt returns the prompt and where it is from.
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

// longestPrompt is in bytes, more than any model takes.
const longestPrompt = 1 << 25

// most returns how many tokens may be written behind a prompt. An encoder-decoder may have
// no limit of its own, and one that finds no end would write for ever.
func (cmd *generateCommand) most(m *models.Model, prompt int) int {
	if cmd.MaxTokens == 0 && m.Sizes().Decoder != nil {
		return 2*prompt + 20 // as attn translate
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
	var session *models.Session // an encoder-decoder has none: it reads its source at once
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
	c.invite("each line is answered; " + endOfInput() + " ends it")
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
