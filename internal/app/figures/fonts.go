package figures

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/viz"
)

// systemFonts are the usual paths of fonts with many scripts.
var systemFonts = []string{
	"/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", "/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc",
	"/usr/share/fonts/google-noto-cjk/NotoSansCJK-Regular.ttc", "/usr/share/fonts/truetype/wqy/*.ttc",
	"/usr/share/fonts/truetype/droid/DroidSansFallback*.ttf", "/usr/share/fonts/truetype/noto/NotoSans*-Regular.ttf",
	"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "/usr/share/fonts/TTF/DejaVuSans.ttf", "/usr/share/fonts/dejavu/DejaVuSans.ttf",
	"/System/Library/Fonts/PingFang.ttc", "/System/Library/Fonts/Hiragino Sans GB.ttc", "/Library/Fonts/Arial Unicode.ttf",
	"/System/Library/Fonts/Supplemental/Arial Unicode.ttf",
	`C:\Windows\Fonts\msyh.ttc`, `C:\Windows\Fonts\YuGothR.ttc`, `C:\Windows\Fonts\malgun.ttf`, `C:\Windows\Fonts\seguisym.ttf`,
}

// Fonts returns fonts for characters: the font of a file if path is not empty, otherwise
// fonts of the system that have some of the characters.
func Fonts(path string, lacking []rune) ([]*viz.Font, error) {
	if path != "" {
		f, err := read(path)
		if err != nil {
			return nil, err
		}
		return []*viz.Font{f}, nil
	}
	var fonts []*viz.Font
	for _, pattern := range systemFonts {
		if len(lacking) == 0 {
			break
		}
		names, _ := filepath.Glob(pattern) // the patterns are valid
		for _, name := range names {
			f, err := read(name)
			if err != nil {
				continue // skip: the user did not choose this font
			}
			n := len(lacking)
			if lacking = slices.DeleteFunc(lacking, f.Has); len(lacking) < n {
				fonts = append(fonts, f)
			}
		}
	}
	return fonts, nil
}

func read(path string) (*viz.Font, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := viz.ParseFont(data)
	if err != nil {
		return nil, &input.Error{Name: path, Err: err}
	}
	return f, nil
}
