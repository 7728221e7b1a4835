package strictjson

import (
	"errors"
	"testing"
)

type inner struct {
	Width int      `json:"width"`
	Rate  *float64 `json:"rate"`
	Seed  uint64   `json:"seed"`
	Names []string `json:"names"`
}

type outer struct {
	Arch  string `json:"arch"`
	Train bool   `json:"train"`
	Inner inner  `json:"inner"`
	Own   own    `json:"own"`
}

type own struct{}

var errOwn = errors.New("an error of its own")

func (*own) UnmarshalJSON([]byte) error { return errOwn }

func TestUnmarshal(t *testing.T) {
	var v outer
	if err := Unmarshal([]byte(" {\"arch\": \"gru\", \"inner\": {\"width\": 7, \"rate\": 0.5}} \n"), &v); err != nil {
		t.Fatal(err)
	}
	if v.Arch != "gru" || v.Inner.Width != 7 || *v.Inner.Rate != 0.5 {
		t.Errorf("got %+v", v)
	}
	if err := Unmarshal([]byte(`{"own": 1}`), &v); !errors.Is(err, errOwn) {
		t.Errorf("error %v, want that of the method", err)
	}
}

func TestUnmarshalErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "is empty, want JSON",
		"  \n":                               "is empty, want JSON",
		`{"arch": "gru"`:                     "ends in the middle of its JSON",
		`{"arch": "gr`:                       "ends in the middle of its JSON",
		`{{`:                                 `is not JSON at line 1, column 2: unexpected '{'`,
		"{\n  \"arch\": \"gru\",\n  ü: 1\n}": `is not JSON at line 3, column 3: unexpected 'ü'`,
		"{\"arch\": \"ü\",}":                 `is not JSON at line 1, column 14: unexpected '}'`,
		"not JSON":                           `is not JSON at line 1, column 2: unexpected 'o'`,
		`{} {}`:                              "something follows the JSON value",
		`{} x`:                               "something follows the JSON value",
		`[]`:                                 "has an array where an object is wanted",
		`7`:                                  "has a number where an object is wanted",
		`{"size": 1}`:                        `unknown field "size"`,
		`{"arch": 3}`:                        `field "arch" has a number where a string is wanted`,
		`{"train": "yes"}`:                   `field "train" has a string where true or false is wanted`,
		`{"inner": true}`:                    `field "inner" has true or false where an object is wanted`,
		`{"inner": {"width": "7"}}`:          `field "inner.width" has a string where a whole number is wanted`,
		`{"inner": {"width": 7.5}}`:          `field "inner.width" has 7.5 where a whole number is wanted`,
		`{"inner": {"width": 9e99}}`:         `field "inner.width" has 9e99 where a whole number is wanted`,
		`{"inner": {"seed": -1}}`:            `field "inner.seed" has -1 where a whole number, at least 0 is wanted`,
		`{"inner": {"rate": {}}}`:            `field "inner.rate" has an object where a number is wanted`,
		`{"inner": {"names": "x"}}`:          `field "inner.names" has a string where an array is wanted`,
	} {
		if err := Unmarshal([]byte(text), new(outer)); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}
