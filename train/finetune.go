package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// FineTune trains m, as it is, for exactly so many steps, and over as many epochs
// of the pairs as that takes; without steps it does nothing. It tells report of
// each step, unless report is nil.
//
// Of the settings, Epochs does not count. The learning rate rises over the warm-up
// and then falls along half a cosine, to zero behind the last step: a run whose end
// is known is best left with small steps. Nothing is dropped: a model that has just
// lost a part of itself has none to spare, and with dropout a short run can end behind
// where it began. Heads that are gone stay gone.
//
// Errors: settings out of range, no pairs to learn, ErrDiverged; if ctx ends, the
// context's, with m at the step that was under way.
func FineTune(ctx context.Context, m *models.Model, pairs []seq2seq.Pair, s Settings, steps int, report func(Progress)) error {
	if steps < 0 {
		return fmt.Errorf("train: FineTune: %d steps, want at least 0", steps)
	}
	s.Epochs = 1 // until it is known how many steps that is
	tr, err := NewTrainer(m, pairs, s)
	if err != nil || steps == 0 {
		return err
	}
	tr.tape = tensor.NewTape(tensor.Eval)
	tr.schedule = nn.WarmupCosine(s.Warmup, steps+1) // the last step is not idle
	tr.Settings.Epochs = (steps + tr.steps() - 1) / tr.steps()
	enough := errors.New("enough")
	err = tr.Run(ctx, func(p Progress) error {
		if report != nil {
			report(p)
		}
		if steps--; steps == 0 {
			return enough
		}
		return nil
	})
	if err == enough {
		return nil
	}
	return err
}
