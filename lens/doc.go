// Package lens measures what the parts of a model cause: how much an output changes if a head is silenced, has its mean,
// or has what it computed for another text. Weights show what was mixed; effects show what it did.
//
//	m, err := models.Load("gpt2", models.Options{})
//	l, err := lens.New(m, lens.Logits{{Token: paris, Factor: 1}, {Token: rome, Factor: -1}})
//	base, effects, err := l.Effects(ctx, lens.Text(a), lens.Zero, lens.Heads(m))
//
// A Metric is the number that an output is judged by, a Site a place in the model, a Source what to put there, and a Change
// a Site with its value. Measure computes the metric exactly for any sets of changes, each alone: it begins at the first
// block that changes, from the states that a run without changes has left, and computes many sets as one batch. Attribute
// estimates effects to first order, from one backward pass. Edges and Circuit are about paths from head to head.
//
// A result does not depend, to the bit, on what else is measured or on the limit of memory, and a value put back where it
// came from changes nothing.
package lens
