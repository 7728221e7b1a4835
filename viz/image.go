package viz

import (
	"image"
	"image/color"
)

// mostVectors is the largest number of cells that are drawn as vectors. Larger figures, and
// panels with a side above mostVector, are drawn as images.
const (
	mostVectors = 20000
	mostVector  = 128
)

// asImage reports whether a panel is drawn as an image.
func (s *sheet) asImage(p placed) bool {
	return s.cells() > mostVectors || max(len(p.Rows), len(p.Columns)) > mostVector
}

// cells returns the number of cells of all panels.
func (s *sheet) cells() int {
	n := 0
	for _, p := range s.panels {
		n += len(p.Values)
	}
	return n
}

// picture returns a panel as an image with n×n pixels per cell. Masked cells look like 0.
func (s *sheet) picture(p placed, n int, on Ground) *image.Paletted {
	w, h := len(p.Columns), len(p.Rows)
	var palette color.Palette // 255 shades and the colour of holes
	colors := s.colors(on)
	for _, c := range append(colors[:254:254], colors[255], holeTint.on(on)) {
		palette = append(palette, c)
	}
	img := image.NewPaletted(image.Rect(0, 0, w*n, h*n), palette)
	for i := range h {
		line := img.Pix[i*n*img.Stride:][:w*n]
		for j := range w {
			shade := s.shadeOf(p.Panel, i*w+j)
			switch shade {
			case hole: // the last entry of the palette
				shade = 255
			case veil:
				shade = s.paper()
			default:
				shade = min(shade, 254)
			}
			for k := range n {
				line[j*n+k] = uint8(shade)
			}
		}
		for k := 1; k < n; k++ {
			copy(img.Pix[(i*n+k)*img.Stride:], line)
		}
	}
	return img
}
