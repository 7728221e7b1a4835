package viz_test

import (
	"log"
	"os"

	"github.com/attn-go/attn/viz"
)

// Two heads of an encoder–decoder on a terminal without colours, and as JSON.
func ExampleFigure() {
	rows, columns := []string{"the", "black", "cat"}, []string{"le", "chat", "noir"}
	f := viz.Figure{Title: "le chat noir → the black cat", Panels: []viz.Panel{
		{Title: "head 0", Kind: "cross", Rows: rows, Columns: columns, Values: []float32{0.9, 0.05, 0.05, 0.05, 0.3, 0.65, 0.02, 0.8, 0.18}},
		{Title: "head 1", Kind: "cross", Head: 1, Rows: rows, Columns: columns, Values: []float32{0.3, 0.4, 0.3, 0.1, 0.1, 0.8, 0, 0.1, 0.9}},
	}}
	if err := f.Text(os.Stdout, viz.Terminal{Width: 80}); err != nil {
		log.Fatal(err)
	}
	if err := f.JSON(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// le chat noir → the black cat
	// head 0  head 1
	// █··     ▒▒▒
	// ·▒▓     ··█
	// ·█░     ··█
	// ·· from 0  ░░ from 0.125  ▒▒ from 0.25  ▓▓ from 0.5  ██ from 0.75
	// rows attend to columns
	// {"title":"le chat noir → the black cat","panels":[
	// {"title":"head 0","kind":"cross","layer":0,"head":0,"queries":["the","black","cat"],"keys":["le","chat","noir"],"weights":[[0.9,0.05,0.05],[0.05,0.3,0.65],[0.02,0.8,0.18]]},
	// {"title":"head 1","kind":"cross","layer":0,"head":1,"queries":["the","black","cat"],"keys":["le","chat","noir"],"weights":[[0.3,0.4,0.3],[0.1,0.1,0.8],[0,0.1,0.9]]}]}
}

// A falling line, compared with the whole model, as SVG for a page and PNG for a document.
func ExampleChart() {
	c := viz.Chart{
		Title: "Quality as heads are removed", X: "heads left", Y: "BLEU", Falling: true,
		Lines:  []viz.Line{{Name: "gradient", X: []float64{72, 36, 6}, Y: []float64{44.1, 43.8, 21.5}, Markers: true}},
		Levels: []viz.Level{{Name: "whole model", Y: 44.1}},
	}
	for _, name := range []string{"left.svg", "left.png"} {
		if err := viz.WriteFile(name, c); err != nil {
			log.Fatal(err)
		}
	}
}
