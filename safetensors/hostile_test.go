package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// frame returns a file with the given header and size bytes of data.
func frame(header string, size int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	return append(b, make([]byte, size)...)
}

// sized returns a file that claims a header of n bytes, followed by follows.
func sized(n uint64, follows string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, n), follows...)
}

// one returns the header of a single tensor q.
func one(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"q":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

// f32 returns the entry of a vector.
func f32(name string, begin, end int) string {
	return fmt.Sprintf(`"%s":{"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]}`, name, (end-begin)/4, begin, end)
}

const good = `"shape":[2,5],"data_offsets":[0,40]`

var tooLarge = fmt.Sprint(uint64(math.MaxInt) + 1)

var hostile = []struct {
	name string
	file []byte
	want string // the message, or its beginning if it ends in "…"
}{
	// The header length.
	{"empty file", nil, `file has 0 bytes, want at least 8 for the header length`},
	{"short file", []byte("1234567"), `file has 7 bytes, want at least 8 for the header length`},
	{"no header", sized(0, ""), `header length is 0, want at least 2`},
	{"header of one byte", sized(1, "{"), `header length is 1, want at least 2`},
	{"header beyond the file", sized(4, "{} "), `header length is 4, but only 3 bytes follow`},
	{"header beyond the limit", sized(100_000_001, "{}"), "is not a safetensors file: it begins with \"\\x01\\xe1\\xf5\\x05\\x00\\x00\\x00\\x00\""},
	{"text", []byte("le chat\tthe cat\n"), `is not a safetensors file: it begins with "le chat\t"`},
	{"header length overflows", sized(math.MaxUint64, "{}"), `is not a safetensors file: it begins with "\xff\xff\xff\xff\xff\xff\xff\xff"`},
	{"header length is negative", sized(1<<63, "{}"), `is not a safetensors file: it begins with "\x00\x00\x00\x00\x00\x00\x00\x80"`},
	{"LFS pointer", []byte("version https://git-lfs.github.com/spec/v1\n"), `is a Git LFS pointer, not the file itself: run git lfs pull`},
	{"zip", []byte("PK\x03\x04\x00\x00\x08\x08"), `is a zip archive, perhaps of PyTorch, not a safetensors file`},
	{"GGUF", []byte("GGUF\x03\x00\x00\x00"), `is a GGUF file, not a safetensors file`},
	{"JSON", []byte(`{"weight_map": {}}`), `is a JSON file, not a safetensors file`},

	// The text of the header.
	{"not UTF-8", frame("{\"\xff\":1}", 0), `header is not UTF-8`},
	{"array", frame(`[]`, 0), `header begins with "[", want '{'`},
	{"space before", frame(` {}`, 0), `header begins with " ", want '{'`},
	{"byte order mark", frame("\ufeff{}", 0), `header begins with "\xef", want '{'`},
	{"unclosed", frame(`{"q":`, 0), `tensor "q": header ends in the middle of its JSON`},
	{"unclosed string", frame(`{"q`, 0), `header ends in the middle of its JSON`},
	{"only spaces after the brace", frame(`{     `, 0), `header …`},
	{"two objects", frame(`{}{}`, 0), `header continues with "{" after the end of its JSON, want spaces`},
	{"padded with newline", frame("{} \n", 0), `header continues with "\n" after the end of its JSON, want spaces`},
	{"padded with zero", frame("{}\x00", 0), `header continues with "\x00" after the end of its JSON, want spaces`},
	{"comma at the end", frame(`{"__metadata__":{},}`, 0), `header is not JSON at line 1, column …`},
	{"comma missing", frame(`{"__metadata__":{} "q":{}}`, 0), `header is not JSON at line 1, column …`},
	{"colon missing", frame(`{"__metadata__" {}}`, 0), `header is not JSON at line 1, column …`},
	{"key is a number", frame(`{1:{}}`, 0), `header is not JSON at line 1, column …`},
	{"key is missing", frame(`{:{}}`, 0), `header is not JSON at line 1, column …`},
	{"wrong bracket", frame(`{"__metadata__":{]}`, 0), `header is not JSON at line 1, column …`},
	{"comment", frame(`{/**/}`, 0), `header is not JSON at line 1, column …`},
	{"control character", frame("{\"a\nb\":{}}", 0), `header is not JSON at line 1, column …`},
	{"bad escape", frame(`{"\x41":{}}`, 0), `header is not JSON at line 1, column …`},
	{"half a pair", frame(`{"\ud83d":{}}`, 0), `a key "�" has half of a surrogate pair`},
	{"half a pair, low", frame(`{"\ude00":{}}`, 0), `a key "�" has half of a surrogate pair`},
	{"half a pair before another", frame(`{"\\\ud83d\u0041":{}}`, 0), `a key "\\�A" has half of a surrogate pair`},
	{"half a pair in metadata", frame(`{"__metadata__":{"a":"\n\ud83d"}}`, 0), `__metadata__ "a": its value "\n�" has half of a surrogate pair`},

	// Names and metadata.
	{"name twice", frame(`{`+f32("q", 0, 8)+`,`+f32("k", 8, 16)+`,`+f32("q", 16, 24)+`}`, 24), `header has the key "q" twice`},
	{"name twice, one escaped", frame(`{`+f32("q", 0, 8)+`,`+f32(`\u0071`, 8, 16)+`}`, 16), `header has the key "q" twice`},
	{"long name", frame(`{`+f32(strings.Repeat("n", 4097), 0, 8)+`}`, 8), `tensor "` + strings.Repeat("n", 100) + `"…: name has 4097 bytes, want at most 4096`},
	{"metadata twice", frame(`{"__metadata__":{},"__metadata__":{}}`, 0), `header has the key "__metadata__" twice`},
	{"metadata key twice", frame(`{"__metadata__":{"a":"1","a":"1"}}`, 0), `__metadata__ has the key "a" twice`},
	{"metadata is null", frame(`{"__metadata__":null}`, 0), `__metadata__ is null, want an object`},
	{"metadata is text", frame(`{"__metadata__":"pt"}`, 0), `__metadata__ is the string "pt", want an object`},
	{"metadata is a tensor", frame(`{"__metadata__":{"dtype":"F32",`+good+`}}`, 40), `__metadata__ "shape": its value is an array, want a string`},
	{"metadata value is a number", frame(`{"__metadata__":{"step":3}}`, 0), `__metadata__ "step": its value is the number 3, want a string`},
	{"metadata value is an object", frame(`{"__metadata__":{"a":{"b":"c"}}}`, 0), `__metadata__ "a": its value is an object, want a string`},

	// The fields of a tensor.
	{"entry is null", frame(`{"q":null}`, 0), `tensor "q": entry is null, want an object`},
	{"entry is an array", frame(`{"q":[]}`, 0), `tensor "q": entry is an array, want an object`},
	{"entry is true", frame(`{"q":true}`, 0), `tensor "q": entry is true, want an object`},
	{"no fields", frame(`{"q":{}}`, 0), `tensor "q": has no dtype`},
	{"no dtype", frame(`{"q":{`+good+`}}`, 40), `tensor "q": has no dtype`},
	{"no shape", frame(`{"q":{"dtype":"F32","data_offsets":[0,40]}}`, 40), `tensor "q": has no shape`},
	{"no offsets", frame(`{"q":{"dtype":"F32","shape":[2,5]}}`, 40), `tensor "q": has no data_offsets`},
	{"unknown field", frame(`{"q":{"dtype":"F32",`+good+`,"strides":[5,1]}}`, 40), `tensor "q": unknown field "strides"`},
	{"field in capitals", frame(`{"q":{"DType":"F32",`+good+`}}`, 40), `tensor "q": unknown field "DType"`},
	{"field twice", frame(`{"q":{"dtype":"F32","dtype":"I32",`+good+`}}`, 40), `tensor "q": entry has the key "dtype" twice`},
	{"offsets twice", frame(`{"q":{"dtype":"F32",`+good+`,"data_offsets":[0,40]}}`, 40), `tensor "q": entry has the key "data_offsets" twice`},
	{"deep nesting", frame(`{"q":`+strings.Repeat(`[`, 1_000_003), 0), `tensor "q": entry is an array, want an object`},
	{"deep nesting in shape", frame(`{"q":{"shape":`+strings.Repeat(`[`, 1_000_003), 0), `tensor "q": shape[0] is an array, want a number`},

	// The type.
	{"unknown dtype", frame(one(`"F128"`, `[2,5]`, `[0,40]`), 40), `tensor "q": unknown dtype "F128", want one of ` + oneOf},
	{"dtype in small letters", frame(one(`"f32"`, `[2,5]`, `[0,40]`), 40), `tensor "q": unknown dtype "f32", want one of ` + oneOf},
	{"empty dtype", frame(one(`""`, `[2,5]`, `[0,40]`), 40), `tensor "q": unknown dtype "", want one of ` + oneOf},
	{"dtype is a number", frame(one(`32`, `[2,5]`, `[0,40]`), 40), `tensor "q": dtype is the number 32, want a string`},
	{"dtype is null", frame(one(`null`, `[2,5]`, `[0,40]`), 40), `tensor "q": dtype is null, want a string`},
	{"dtype for the screen", frame(one(`"\u001b[2J`+strings.Repeat("é", 200)+`"`, `[2,5]`, `[0,40]`), 40), `tensor "q": unknown dtype "\x1b[2J` + strings.Repeat("é", 96) + `"…, want one of ` + oneOf},

	// The shape.
	{"shape is null", frame(one(`"F32"`, `null`, `[0,40]`), 40), `tensor "q": shape is null, want an array`},
	{"shape is a number", frame(one(`"F32"`, `10`, `[0,40]`), 40), `tensor "q": shape is the number 10, want an array`},
	{"shape is an object", frame(one(`"F32"`, `{"0":10}`, `[0,40]`), 40), `tensor "q": shape is an object, want an array`},
	{"negative dimension", frame(one(`"F32"`, `[-2,-5]`, `[0,40]`), 40), `tensor "q": shape[0] is -2, want a non-negative integer`},
	{"negative zero", frame(one(`"F32"`, `[3,-0]`, `[0,0]`), 0), `tensor "q": shape[1] is -0, want a non-negative integer`},
	{"fraction", frame(one(`"F32"`, `[2,5.0]`, `[0,40]`), 40), `tensor "q": shape[1] is 5.0, want a non-negative integer`},
	{"exponent", frame(one(`"F32"`, `[1e1]`, `[0,40]`), 40), `tensor "q": shape[0] is 1e1, want a non-negative integer`},
	{"leading zero", frame(one(`"F32"`, `[010]`, `[0,40]`), 40), `tensor "q": header is not JSON at line 1, column …`},
	{"number as text", frame(one(`"F32"`, `["10"]`, `[0,40]`), 40), `tensor "q": shape[0] is the string "10", want a number`},
	{"dimension is true", frame(one(`"F32"`, `[true]`, `[0,4]`), 4), `tensor "q": shape[0] is true, want a number`},
	{"dimension overflows", frame(one(`"F32"`, `[`+tooLarge+`]`, `[0,40]`), 40), `tensor "q": shape[0] is ` + tooLarge + `, which overflows`},
	{"dimension of many digits", frame(one(`"F32"`, `[`+strings.Repeat("9", 100_003)+`]`, `[0,40]`), 40), `tensor "q": shape[0] is ` + strings.Repeat("9", 100) + `…, which overflows`},
	{"product overflows", frame(one(`"F32"`, `[2147483647,2147483647,11]`, `[0,40]`), 40), `tensor "q": shape [2147483647 2147483647 11] of F32 overflows`},
	{"product overflows to 0", frame(one(`"U8"`, `[1073741824,1073741824,16]`, `[0,0]`), 0), `tensor "q": shape [1073741824 1073741824 16] of U8 overflows`},
	{"product overflows behind 0", frame(one(`"U8"`, `[0,1073741824,1073741824,16]`, `[0,0]`), 0), `tensor "q": shape [0 1073741824 1073741824 16] of U8 overflows`},
	{"bytes overflow", frame(one(`"F64"`, `[`+fmt.Sprint(math.MaxInt/8+1)+`]`, `[0,0]`), 0), `tensor "q": shape [` + fmt.Sprint(math.MaxInt/8+1) + `] of F64 overflows`},
	{"rank", frame(one(`"U8"`, `[1`+strings.Repeat(",1", 64)+`]`, `[0,1]`), 1), `tensor "q": shape has more than 64 numbers`},
	{"half a byte", frame(one(`"F4"`, `[3]`, `[0,2]`), 2), `tensor "q": shape [3] of F4 ends inside a byte`},
	{"three quarters of a byte", frame(one(`"F6_E2M3"`, `[5]`, `[0,4]`), 4), `tensor "q": shape [5] of F6_E2M3 ends inside a byte`},

	// The offsets.
	{"one offset", frame(one(`"F32"`, `[2,5]`, `[40]`), 40), `tensor "q": data_offsets are [40], want 2 numbers`},
	{"no offset", frame(one(`"F32"`, `[2,5]`, `[]`), 40), `tensor "q": data_offsets are [], want 2 numbers`},
	{"three offsets", frame(one(`"F32"`, `[2,5]`, `[0,40,80]`), 40), `tensor "q": data_offsets has more than 2 numbers`},
	{"negative offset", frame(one(`"F32"`, `[2,5]`, `[-40,0]`), 40), `tensor "q": data_offsets[0] is -40, want a non-negative integer`},
	{"offset overflows", frame(one(`"F32"`, `[2,5]`, `[0,18446744073709551656]`), 40), `tensor "q": data_offsets[1] is 18446744073709551656, which overflows`},
	{"backwards", frame(one(`"F32"`, `[2,5]`, `[40,0]`), 40), `tensor "q": data_offsets [40 0] end before they begin`},
	{"more bytes than the shape", frame(one(`"F32"`, `[2,5]`, `[0,48]`), 48), `tensor "q": data_offsets [0 48] span 48 bytes, want 40 for F32 [2 5]`},
	{"fewer bytes than the shape", frame(one(`"F32"`, `[2,5]`, `[0,4]`), 4), `tensor "q": data_offsets [0 4] span 4 bytes, want 40 for F32 [2 5]`},
	{"rank 0 without data", frame(one(`"F32"`, `[]`, `[0,0]`), 0), `tensor "q": data_offsets [0 0] span 0 bytes, want 4 for F32 []`},
	{"empty with data", frame(one(`"F32"`, `[3,0]`, `[0,12]`), 12), `tensor "q": data_offsets [0 12] span 12 bytes, want 0 for F32 [3 0]`},
	{"hole at the start", frame(one(`"F32"`, `[2,5]`, `[8,48]`), 48), `tensor "q": data_offsets [8 48] begin at 8, want 0`},
	{"hole", frame(`{`+f32("q", 0, 8)+`,`+f32("k", 12, 20)+`}`, 20), `tensor "k": data_offsets [12 20] begin at 12, want 8, where tensor "q" ends`},
	{"overlap", frame(`{`+f32("q", 0, 8)+`,`+f32("k", 4, 12)+`}`, 12), `tensor "k": data_offsets [4 12] begin at 4, want 8, where tensor "q" ends`},
	{"the same bytes", frame(`{`+f32("q", 0, 8)+`,`+f32("k", 0, 8)+`}`, 8), `tensor "k": data_offsets [0 8] begin at 0, want 8, where tensor "q" ends`},
	{"empty inside another", frame(`{`+f32("q", 0, 8)+`,`+f32("k", 4, 4)+`}`, 8), `tensor "k": data_offsets [4 4] begin at 4, want 8, where tensor "q" ends`},
	{"empty beyond the end", frame(`{`+f32("q", 0, 8)+`,`+f32("k", 12, 12)+`}`, 8), `tensor "k": data_offsets [12 12] begin at 12, want 8, where tensor "q" ends`},

	// The end of the file.
	{"data missing", frame(one(`"F32"`, `[2,5]`, `[0,40]`), 39), `file contains 39 bytes of data, want 40 for its tensors`},
	{"data left over", frame(one(`"F32"`, `[2,5]`, `[0,40]`), 41), `file contains 41 bytes of data, want 40 for its tensors`},
	{"data of no tensor", frame(`{}`, 1), `file contains 1 bytes of data, want 0 for its tensors`},
	{"terabytes missing", frame(one(`"U8"`, `[1099511627]`, `[0,1099511627]`), 0), `file contains 0 bytes of data, want 1099511627 for its tensors`},
}

func TestHostile(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			f, err := Parse(c.file)
			if f != nil || err == nil {
				t.Fatalf("accepted %.100q", c.file)
			}
			var bad *FormatError
			if !errors.As(err, &bad) {
				t.Errorf("error of type %T, want *FormatError", err)
			}
			got, want := err.Error(), "safetensors: "+c.want
			if beginning, ok := strings.CutSuffix(want, " …"); ok && strings.HasPrefix(got, beginning+" ") {
				return
			}
			if got != want {
				t.Errorf("error\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// oneOf is the list of types in messages.
const oneOf = "BOOL, U8, I8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64, " +
	"F4, F6_E2M3, F6_E3M2, F8_E4M3, F8_E5M2, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, C64"
