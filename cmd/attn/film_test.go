package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/film"
	"github.com/attn-go/attn/internal/app/recording"
)

// The page of attn follow gets the steps of a recording, and a picture and numbers of each.
func TestFollowedFilm(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: a run")
	}
	t.Chdir(t.TempDir())
	command(t, "train", "--limit", "60", "--width", "8", "--epochs", "1", "--batch", "12", "--out", "run")
	f, err := recording.Film("run")
	if err != nil {
		t.Fatal(err)
	}
	page := film.Describe(f, nil)
	if n := len(page.Steps); n < 3 || page.Steps[0] != 0 || len(page.Losses) != n || page.Losses[0].Known() || !page.Losses[1].Known() {
		t.Errorf("steps %v, losses %v", page.Steps, page.Losses)
	}
	if !strings.Contains(page.Text, " → ") || !strings.HasPrefix(page.Title, "cross-attention, layer ") {
		t.Errorf("%q, %q", page.Title, page.Text)
	}
	for _, step := range page.Steps {
		frame, err := film.Draw(f, step)
		if err != nil || !strings.Contains(frame.Picture, "</svg>") || !strings.Contains(frame.Text, "head 0 0.") {
			t.Errorf("step %d: %v, %q, %.100s", step, err, frame.Text, frame.Picture)
		}
	}
	if _, err := film.Draw(f, 2); err == nil {
		t.Error("a frame of a step that was not recorded")
	}
	if _, err := film.Draw(nil, 0); err == nil {
		t.Error("a frame without a recording")
	}
	if page := film.Describe(nil, errors.New("film.safetensors: broken")); page.Error != "film.safetensors: broken" || page.Steps != nil {
		t.Errorf("%+v", page)
	}
	if page := film.Describe(nil, nil); page.Error != "" || page.Steps != nil {
		t.Errorf("%+v", page)
	}
}
