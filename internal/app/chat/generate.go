package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tokenizer"
)

// Generator streams the texts that a language model generates.
type Generator struct {
	Model     *models.Model
	Tokenizer *tokenizer.Tokenizer
	Options   models.Generation
	Out       io.Writer
	Plain     bool      // do not replace control characters
	Stops     []string  // a text ends before the first of these that the model writes
	JSON      bool      // write a JSON object for each text, see written
	Messages  io.Writer // for the speed of each text
	Written   int       // tokens of the last text

	talk    *Conversation
	session *models.Session // of a conversation; nil for an encoder-decoder, which encodes the whole source at once
}

// LongestPrompt is the maximum size of a prompt in bytes, beyond the context of any model.
const LongestPrompt = 1 << 25

// Encode returns the tokens of a prompt. name is its source, for errors.
//
// Errors: *input.Error, also for a prompt that is too long for the model.
func (g *Generator) Encode(name, text string, noSpecial bool) (*tokenizer.Encoding, error) {
	most := g.Model.Sizes().Positions
	e, err := g.Tokenizer.Encode(text, tokenizer.Options{
		NoSpecial: noSpecial, NoPadding: true, NoTruncation: most == 0, MaxLength: most, Strategy: tokenizer.LongestFirst,
	})
	if err == nil {
		err = g.fits(e)
	}
	if err != nil {
		return nil, &input.Error{Name: name, Err: err}
	}
	return e, nil
}

// Converse starts a conversation by the chat template in dir. An answer also ends at the eos_token of the
// tokenizer.
//
// Errors: those of New.
func (g *Generator) Converse(dir string) (talk *Conversation, err error) {
	if g.talk, err = New(dir, g.Tokenizer); err != nil {
		return nil, err
	}
	if g.Options.Ends, err = g.Model.EndTokens(); err != nil {
		return nil, err
	}
	if end, ok := g.talk.End(); ok {
		g.Options.Ends = append(slices.Clone(g.Options.Ends), end)
	}
	if g.Model.Sizes().Decoder == nil {
		g.session, err = g.Model.NewSession(attn.CacheConfig{})
	}
	return g.talk, err
}

// Answer answers a message in the conversation. name and line are its source, for errors.
func (g *Generator) Answer(ctx context.Context, name string, line int, message string) error {
	g.talk.Say("user", message)
	e, err := g.talk.Encode()
	if err == nil {
		err = g.fits(e)
	}
	if err != nil {
		if errors.As(err, new(*input.Error)) {
			return err
		}
		return &input.Error{Name: name, Line: line, Err: err}
	}
	answer, err := g.Write(ctx, e)
	g.talk.Say("assistant", answer)
	return err
}

// AnswerLines answers each line of an input that is not blank.
func (g *Generator) AnswerLines(ctx context.Context, name string, in io.Reader) error {
	var failed error // may be an interruption, which has no line
	err := input.EachLine(in, name, LongestPrompt, func(line int, text string) error {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		if failed = g.Answer(ctx, name, line, text); failed != nil {
			return io.EOF
		}
		return nil
	})
	return cmp.Or(failed, err)
}

// ReadPrompt reads an input as one prompt, without byte order marks and the line breaks at its end.
func ReadPrompt(name string, in io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(in, LongestPrompt+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > LongestPrompt:
		return "", input.Errorf(name, "more than %d bytes, want a prompt", LongestPrompt)
	}
	return input.Unmark(strings.TrimRight(string(data), "\r\n")), nil
}

// fits returns an error if a prompt is too long for the model.
func (g *Generator) fits(e *tokenizer.Encoding) error {
	if e.Truncated {
		return fmt.Errorf("the prompt has more than %d tokens, the limit of the model", g.Model.Sizes().Positions)
	}
	if err := g.Model.Sizes().Check(models.BatchOf(e)); err != nil {
		return fmt.Errorf("the prompt has %w", err)
	}
	return nil
}

// written is a text as a JSON object.
type written struct {
	Text   string  `json:"text"`
	Finish string  `json:"finish"`         // end (the last token ends texts), stop, length or interrupted
	Stop   string  `json:"stop,omitempty"` // of Stops
	Prompt int     `json:"prompt_tokens"`
	Tokens []token `json:"tokens"`
}

// token is a token that the model has chosen. The texts of all tokens are the whole text, and a stop. A token that ends
// within a character has no text; that of the next one contains the character.
type token struct {
	ID      int      `json:"id"`
	Text    string   `json:"text"`
	LogProb *float64 `json:"logprob"` // the natural logarithm of its probability; null if it is 0 or not a number
}

// logProb returns the logarithm of the softmax of scores at id.
func logProb(id int, scores []float32) *float64 {
	sum := 0.0
	for _, v := range scores {
		sum += math.Exp(float64(v) - float64(scores[id]))
	}
	if p := -math.Log(sum); p-p == 0 {
		return &p
	}
	return nil
}

// Write writes the text that follows a prompt, up to an end token or one of Stops, and returns it.
//
// Errors: the error of ctx after an interruption.
func (g *Generator) Write(ctx context.Context, e *tokenizer.Encoding) (string, error) {
	z, generate := g.Model.Sizes(), g.Model.Generate
	if g.session != nil {
		generate = g.session.Generate
	}
	o := g.Options
	if o.Tokens == 0 && z.Decoder != nil { // an encoder-decoder could generate without end
		o.Tokens = 2*len(e.IDs) + 20 // the limit of attn translate
	}
	y := written{Prompt: len(e.IDs), Tokens: []token{}}
	p := &printer{out: g.Out, plain: g.Plain, stops: g.Stops}
	if g.JSON {
		p.out = io.Discard
		o.Chosen = func(id int, scores []float32) {
			y.Tokens = append(y.Tokens, token{ID: id, LogProb: logProb(id, scores)})
		}
	}
	tokens, err := generate(ctx, e.IDs, o)
	if err != nil {
		return "", err
	}
	stream := g.Tokenizer.Target().Stream() // of g.Tokenizer, unless that has separate source and target vocabularies
	for _, id := range e.IDs {
		if z.Decoder != nil || g.talk != nil { // the output is a new text
			break
		}
		stream.Next(id) // a token may decode differently at the start of a text
	}
	speed := newPace(len(e.IDs))
	for id := range tokens {
		speed.token()
		piece := stream.Next(id)
		if g.JSON {
			y.Tokens[len(y.Tokens)-1].Text = piece
		}
		if !p.next(piece) || ctx.Err() != nil {
			break
		}
	}
	if g.session != nil {
		speed.prompt = g.session.Fresh()
	}
	g.Written = speed.tokens
	if rest := stream.Rest(); p.stopped == "" && p.next(rest) {
		p.rest()
		if g.JSON && speed.tokens > 0 {
			y.Tokens[speed.tokens-1].Text += rest
		}
	}
	answer := p.text.String()
	if g.JSON {
		switch y.Text, y.Stop = answer, p.stopped; {
		case p.stopped != "":
			y.Finish = "stop"
		case ctx.Err() != nil:
			y.Finish = "interrupted"
		case len(y.Tokens) > speed.tokens:
			y.Finish = "end"
		default:
			y.Finish = "length"
		}
		if err := json.NewEncoder(g.Out).Encode(y); err != nil {
			return answer, err
		}
	} else if p.print("\n"); p.err != nil {
		return answer, p.err
	}
	fmt.Fprintln(g.Messages, speed)
	if most := z.Positions; most > 0 && z.Decoder == nil && len(e.IDs)+speed.tokens > most && p.stopped == "" && ctx.Err() == nil {
		fmt.Fprintf(g.Messages, "stopped at %d tokens, the maximum length of the model\n", most)
	}
	return answer, ctx.Err()
}
