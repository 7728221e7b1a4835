package apply

import "testing"

func TestMeant(t *testing.T) {
	names := []string{"q", "k", "v", "mask", "valid_lens", "score.w"}
	for name, want := range map[string]string{
		"valid_len": `, did you mean "valid_lens"?`, "Mask": `, did you mean "mask"?`, "masks": `, did you mean "mask"?`,
		"qk": ", want q, k, v, mask, valid_lens, score.w", "lengths": ", want q, k, v, mask, valid_lens, score.w",
	} {
		if got := meant(name, names); got != want {
			t.Errorf("%s%s, want %s%s", name, got, name, want)
		}
	}
}
