package view

import (
	"net/http"
	"strconv"

	"github.com/attn-go/attn/viz"
)

// Limits for the width of pictures in requests.
const leastPicture, mostPicture = 300, 1600

// NewTraining returns a server for a page that shows the progress of a training run. run returns its data, with
// pictures of the given width in CSS pixels, and frame a frame of its recording; encoding/json must be able to encode
// both.
func NewTraining(name string, run func(width float64) (any, error), frame func(step int) (any, error)) *Server {
	dark := []byte("@media (prefers-color-scheme: dark) {" + viz.DarkCharts() + viz.DarkFigures() + "}\n")
	mux := serveFolder("training")
	mux.HandleFunc("GET /page/charts.css", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "text/css; charset=utf-8", dark)
	})
	mux.HandleFunc("GET /api/training", respond(func(r *http.Request) (any, error) {
		width, err := strconv.Atoi(r.URL.Query().Get("width"))
		if err != nil || width < leastPicture || width > mostPicture {
			return nil, bad("width is not %d to %d", leastPicture, mostPicture)
		}
		data, err := run(float64(width))
		return map[string]any{"name": name, "run": data}, err
	}))
	mux.HandleFunc("GET /api/frame", respond(func(r *http.Request) (any, error) {
		step, err := strconv.Atoi(r.URL.Query().Get("step"))
		if err != nil || step < 0 {
			return nil, bad("step is not a number of steps")
		}
		return frame(step)
	}))
	s := &Server{secret: newSecret()}
	s.handler = s.guard(mux)
	return s
}
