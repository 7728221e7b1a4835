package train

import (
	"context"
	"fmt"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// FineTune trains m for the given number of steps, over as many epochs of the pairs as
// necessary; without steps it does nothing. After each step it calls report, unless report
// is nil.
//
// FineTune ignores the setting Epochs. The learning rate rises during the warm-up and then falls
// along half a cosine to zero after the last step: a run of known length ends best with small
// steps. FineTune uses no dropout: a pruned model has no capacity to spare, and with dropout a
// short run can make it worse. Removed heads stay removed.
//
// Errors: settings out of range, no pairs to learn, models.ErrDiverged; if ctx ends, the context's
// error, after the current step is finished.
func FineTune(ctx context.Context, m *models.Model, pairs []seq2seq.Pair, s Settings, steps int, report func(Progress)) error {
	if steps < 0 {
		return fmt.Errorf("train: FineTune: %d steps, want at least 0", steps)
	}
	s.Epochs = 1 // until the number of steps per epoch is known
	tr, err := NewTrainer(m, pairs, s)
	if err != nil || steps == 0 {
		return err
	}
	tr.tape = tensor.NewTape(tensor.Eval)
	tr.schedule = nn.WarmupCosine(s.Warmup, steps+1) // so that the last step is not zero
	tr.Settings.Epochs = (steps + tr.steps() - 1) / tr.steps()
	return tr.Run(ctx, func(p Progress) error {
		if report != nil {
			report(p)
		}
		if steps--; steps == 0 {
			return ErrStop
		}
		return nil
	})
}
