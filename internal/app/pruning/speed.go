package pruning

import (
	"context"

	"github.com/attn-go/attn/internal/app/pruning/reports"
)

// speed compares the speed of the pruned and the whole model, in alternation: with Compare that of all works, otherwise
// that of a goal of speed.
func (x *run) speed(ctx context.Context) error {
	if x.SpeedTime <= 0 || x.left == nil || !x.Compare && x.Goal.Speed == 0 {
		return nil
	}
	list := x.Task.Works()
	if !x.Compare {
		list = list[:1]
	}
	stage := "speed"
	if x.Goal.Speed == 0 { // which needs the measurement
		stage += " (--speed-time 0 skips it)"
	}
	tell := x.progress(stage)
	for i, w := range list {
		tell(i, len(list))
		s, err := turns(ctx, x.SpeedTime, w.On(x.Subject), w.On(x.left))
		if err != nil {
			return err
		}
		s.Work, s.Batch, s.Length = w.Name, w.Batch, w.Length
		if s.Bound = reports.NaN; w.Operations != nil {
			s.Bound = reports.Number(w.Operations(x.Subject) / w.Operations(x.left))
		}
		x.report.Speed = append(x.report.Speed, s)
	}
	if len(list) > 0 {
		tell(len(list), len(list))
	}
	return nil
}
