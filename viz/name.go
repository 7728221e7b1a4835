package viz

import "fmt"

// The names of heads are the same in titles of figures, on the page of attn view and in reports: long ones where
// there is room, "cross-attention, layer 0, head 2", and otherwise short ones, "0.2".

// KindName returns the name of a kind of attention, such as "cross-attention" for "cross".
func KindName(kind string) string {
	if kind == "cross" {
		return "cross-attention"
	}
	return kind
}

// LayerName returns the name of a layer, such as "cross-attention, layer 0".
func LayerName(kind string, layer int) string {
	return fmt.Sprintf("%s, layer %d", KindName(kind), layer)
}

// HeadName returns the name of a head, such as "encoder, layer 3, head 5".
func HeadName(kind string, layer, head int) string {
	return fmt.Sprintf("%s, head %d", LayerName(kind, layer), head)
}

// ShortHeadName returns the name of a head without its kind, such as "3.5" for layer 3, head 5.
func ShortHeadName(layer, head int) string { return fmt.Sprintf("%d.%d", layer, head) }
