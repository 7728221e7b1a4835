// Package optim trains the parameters of modules: optimisers (AdamW, SGD), gradient clipping and learning rate schedules.
package optim
