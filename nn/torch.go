package nn

import "fmt"

// TorchModule is a module that also exists in PyTorch, or that consists of such modules.
type TorchModule interface {
	Module
	// TorchState returns the table of the module's PyTorch state dict: its names, and the tensors that PyTorch stacks
	// or splits. It returns an error if PyTorch's module does not support this module's settings.
	TorchState() (StateDict, error)
}

// TorchNames returns the table of PyTorch's names, for Save and Load. The module must be a TorchModule.
func TorchNames(m Module) (StateDict, error) {
	t, ok := m.(TorchModule)
	if !ok {
		return nil, fmt.Errorf("nn: TorchNames: %T has no PyTorch names: it has no method TorchState", m)
	}
	return t.TorchState()
}

// JoinTorch joins the tables of several modules, each name preceded by the module's name and a dot. Use it for the
// TorchState of a module that consists of other modules. It is Join for tables.
func JoinTorch(modules ...Named) (StateDict, error) {
	var all StateDict
	for _, m := range modules {
		if m.Module == nil {
			continue
		}
		d, err := TorchNames(m.Module)
		if err != nil {
			return nil, err
		}
		for _, e := range d {
			if m.Name != "" {
				e.Name = m.Name + "." + e.Name
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// TorchState returns the table of torch.nn.Linear.
func (l *Linear) TorchState() (StateDict, error) { return OwnNames(l) }

// TorchState returns the table of torch.nn.Embedding.
func (e *Embedding) TorchState() (StateDict, error) { return OwnNames(e) }

// TorchState returns the table of torch.nn.LayerNorm.
func (n *LayerNorm) TorchState() (StateDict, error) { return OwnNames(n) }

// TorchRecurrent returns the table of one layer and direction of PyTorch's recurrent modules, which number their
// names: "weight_ih_l0", and "weight_ih_l1_reverse" for layer 1 in direction Backward. The gates of m must be stacked
// in PyTorch's order: r, z, n for a GRU.
func TorchRecurrent(m Module, layer int, dir Direction) (StateDict, error) {
	suffix := fmt.Sprintf("_l%d", layer)
	if dir == Backward {
		suffix += "_reverse"
	}
	d, err := OwnNames(m)
	for i := range d {
		d[i].Name += suffix
	}
	return d, err
}
