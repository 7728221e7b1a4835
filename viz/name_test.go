package viz

import "testing"

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		KindName("cross"): "cross-attention", KindName("encoder"): "encoder",
		LayerName("cross", 0): "cross-attention, layer 0", HeadName("decoder", 3, 5): "decoder, layer 3, head 5",
		ShortHeadName(3, 5): "3.5",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
