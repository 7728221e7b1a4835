package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/app/chat"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
)

type generateCommand struct {
	Model       string  `required:"" help:"Directory of a language model: config.json, safetensors files and a tokenizer." placeholder:"DIR"`
	MaxTokens   int     `help:"Maximum number of tokens to generate (default up to the maximum length of the model; for an encoder-decoder, 20 plus twice the number of input tokens)." placeholder:"N" want:"at least 1"`
	Temperature float64 `default:"0" help:"Sampling temperature; 0 always picks the most likely token." placeholder:"T" group:"Sampling" want:"at least 0"`
	TopK        int     `help:"Sample only from the K most likely tokens." placeholder:"K" group:"Sampling" want:"at least 1" needs:"temperature" excludes:"temperature=0"`
	TopP        float64 `help:"Sample only from the most likely tokens, as many as it takes to reach a total probability of P (nucleus sampling)." placeholder:"P" group:"Sampling" want:"0 to 1" needs:"temperature" excludes:"temperature=0"`
	Seed        uint64  `default:"1" help:"Random seed." placeholder:"N" group:"Sampling"`
	Context     int     `help:"Maximum length of prompt and output together, in tokens (default from config.json)." placeholder:"N" group:"Model" want:"at least 1"`
	formatFlag
	languageFlags
	Chat      bool     `help:"Apply the model's chat template, with the prompt as the user's message." group:"Chat"`
	System    *string  `help:"System message at the start of the conversation." placeholder:"TEXT" group:"Chat" needs:"chat"`
	NoSpecial bool     `help:"Do not add special tokens; for a prompt that already contains them." group:"Model" excludes:"chat"`
	Stop      []string `help:"End the text before this text; can be repeated." placeholder:"TEXT" sep:"none"`
	JSON      bool     `name:"json" help:"Write each text as a JSON object, with its tokens and the logarithms of their probabilities."`
	Prompt    *string  `arg:"" optional:"" help:"Text to continue; without it, standard input as a whole, or with --chat each line of it as a message." stdin:""`
}

func (generateCommand) Help() string {
	return `Examples:

  attn generate --model SmolLM2-135M --max-tokens 50 "Attention is"
  attn generate --model gpt2 --temperature 0.8 --top-p 0.95 --seed 7 "Once upon a time"
  attn generate --model Llama-3.2-1B --max-tokens 200 < prompt.txt
  attn generate --model SmolLM2-135M-Instruct --chat --system "Be brief." "Who was Ada Lovelace?"
  attn generate --model SmolLM2-135M --stop "." --json "Attention is" > generated.jsonl

The output is streamed, without the prompt. Generation stops at an end token of
generation_config.json, or else of config.json. Other settings of generation_config.json
are ignored.

With --json, an object has text, finish (end, stop, length or interrupted), prompt_tokens, and
of each token its id, text and logprob: the natural logarithm of the probability that the
model gives it at temperature 1.

With --chat, attn formats the prompt with the model's chat template, as transformers'
apply_chat_template does: chat_template.jinja, or chat_template in tokenizer_config.json.
Messages are text: special tokens are those of the template, also where the template
changes a message or writes beside it. Without a prompt, each line of standard input is
the next message of one conversation. An answer also ends at the eos_token of the
tokenizer. A template with unsupported syntax is an error.`
}

func (cmd *generateCommand) Run(ctx context.Context, c console) error {
	if slices.Contains(cmd.Stop, "") {
		return usage(`--stop "", want a text`)
	}
	options := cmd.options()
	options.Tokens = cmd.Context
	m, err := load(c, models.Load, cmd.Model, options)
	if err == nil {
		m, err = cmd.choose(m)
	}
	if err != nil {
		return err
	}
	if h := m.Head(); h == nil || h.Task != models.NextWord {
		return input.Errorf(cmd.Model, "is %s model without a head for the %s, want a decoder or an encoder-decoder with one", quote.A(m.Family.Name), models.NextWord)
	}
	t, err := m.Tokenizer()
	if err != nil {
		return err
	}
	o := models.Generation{Tokens: cmd.MaxTokens}
	o.Sampling = models.Sampling{Temperature: cmd.Temperature, TopK: cmd.TopK, TopP: cmd.TopP, Seed: cmd.Seed}
	g := &chat.Generator{
		Model: m, Tokenizer: t, Options: o, Stops: cmd.Stop, JSON: cmd.JSON, Out: c.out, Plain: !isTerminal(c.out), Messages: c.err,
	}
	generate := cmd.text
	if cmd.Chat {
		generate = cmd.conversation
	}
	err = generate(ctx, c, g)
	if errors.Is(err, context.Canceled) {
		return interrupted{fmt.Sprintf("interrupted after %d tokens", g.Written)}
	}
	return err
}

// text continues the prompt.
func (cmd *generateCommand) text(ctx context.Context, c console, g *chat.Generator) (err error) {
	name, text := "argument", deref(cmd.Prompt)
	if cmd.Prompt == nil {
		name = "standard input"
		c.invite("type a text to continue; " + endOfInput() + " ends it")
		if text, err = chat.ReadPrompt(name, c.in); err != nil {
			return err
		}
	}
	e, err := g.Encode(name, text, cmd.NoSpecial)
	if err != nil {
		return err
	}
	if template, _, _ := chat.Template(cmd.Model); template != "" && !cmd.NoSpecial {
		c.say("%s has a chat template that is not applied to the prompt; use --chat to apply it", template)
	}
	_, err = g.Write(ctx, e)
	return err
}

// conversation answers the prompt, or each line of standard input.
func (cmd *generateCommand) conversation(ctx context.Context, c console, g *chat.Generator) error {
	talk, err := g.Converse(cmd.Model)
	if err != nil {
		return err
	}
	if cmd.System != nil {
		talk.Say("system", *cmd.System)
	}
	if cmd.Prompt != nil {
		return g.Answer(ctx, "argument", 0, *cmd.Prompt)
	}
	c.invite("type messages, one per line; " + endOfInput() + " ends the conversation")
	return g.AnswerLines(ctx, "standard input", c.in)
}
