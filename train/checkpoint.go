package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/statedict"
)

// TrainingFile contains everything that is needed to resume training exactly: the parameters, the
// state of the optimiser and, in the metadata, the position and the settings of the run. It is a
// single file so that its parts are always from the same step.
const TrainingFile = "training.safetensors"

// checkpoint is the metadata of TrainingFile.
type checkpoint struct {
	Position position                `json:"position"`
	Settings Settings                `json:"settings"`
	Network  models.TranslatorConfig `json:"network"`
	Data     string                  `json:"data"` // hash of the examples
}

// Save writes the translator and the state of training to a directory, which it creates if
// necessary. It replaces either all files or, after an error or if the process is killed, none.
func (tr *Trainer) Save(dir string) error { return atomicfile.Save(dir, tr.Files()) }

// Files returns the files that Save writes, those of Model.Saved included.
func (tr *Trainer) Files() []atomicfile.File {
	return append(tr.model.Saved(), atomicfile.File{Path: TrainingFile, Write: func(w io.Writer) error {
		about, err := json.Marshal(checkpoint{tr.at, tr.Settings, tr.network(), tr.fingerprint()})
		if err != nil {
			return err
		}
		return statedict.SaveTo(w, nn.ModuleFunc(tr.State), statedict.SaveOptions{Metadata: map[string]string{"checkpoint": string(about)}})
	}})
}

// State returns all numbers that are needed to resume training: each parameter as "param.NAME", and its moments as
// "adamw.NAME.m" and "adamw.NAME.v". They share the Trainer's memory.
func (tr *Trainer) State() nn.Params {
	return nn.Join(nn.Named{Name: "param", Module: tr.model}, nn.Named{Name: "adamw", Module: nn.ModuleFunc(tr.optim.State)})
}

// Resume loads the state that Save has written into a trainer with the same pairs and settings.
// Training then continues bit for bit like the original run. Only the number of epochs may
// differ.
func (tr *Trainer) Resume(dir string) error {
	path := filepath.Join(dir, TrainingFile)
	file, err := input.Tensors(path)
	if err != nil {
		return err
	}
	defer file.Close()
	bad := func(format string, args ...any) error {
		return input.Errorf(path, format, args...)
	}
	var c checkpoint
	if err := strictjson.Unmarshal([]byte(file.Metadata()["checkpoint"]), &c); err != nil {
		return bad("its metadata contains no checkpoint: %v", err)
	}
	c.Settings.Epochs = tr.Settings.Epochs
	switch at := c.Position; {
	case c.Settings != tr.Settings:
		return bad("was made with other settings: %+v, not %+v", c.Settings, tr.Settings)
	case !c.Network.Equal(tr.network()):
		return bad("was made with another network: %+v, not %+v", c.Network, tr.network())
	case c.Data != tr.fingerprint():
		return bad("was saved for other training pairs")
	case at.Epoch < 0 || at.Step < 0 || at.Step >= tr.steps() || at.Total != at.Epoch*tr.steps()+at.Step ||
		!at.possible() || !at.Window.possible() || at.Window.Steps < 0 || at.Window.Steps > at.Step:
		return bad("has an invalid position in the training: %+v", at)
	}
	if err := statedict.LoadFrom(file, nn.ModuleFunc(tr.State), statedict.LoadOptions{}); err != nil {
		return input.BadFile(path, err)
	}
	tr.optim.SetSteps(c.Position.Total)
	tr.at = c.Position
	return nil
}

// network returns the configuration of a translator of attn train.
func (tr *Trainer) network() models.TranslatorConfig {
	c, _ := tr.model.TranslatorConfig()
	return c
}

// Done returns the number of completed epochs, and the number of completed steps of the next one.
func (tr *Trainer) Done() (epochs, steps int) { return tr.at.Epoch, tr.at.Step }

// Total returns the number of completed steps of all epochs.
func (tr *Trainer) Total() int { return tr.at.Total }

// fingerprint identifies the examples and their order.
func (tr *Trainer) fingerprint() string {
	h := sha256.New()
	var b []byte
	for _, e := range tr.examples {
		b = b[:0]
		for _, list := range [][]int{e.IDs, e.Targets} {
			b = binary.AppendUvarint(b, uint64(len(list)))
			for _, id := range list {
				b = binary.AppendUvarint(b, uint64(id))
			}
		}
		h.Write(b)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}
