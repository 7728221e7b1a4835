module github.com/attn-go/attn

go 1.26.0

require (
	github.com/HugoSmits86/nativewebp v1.2.1
	github.com/alecthomas/kong v1.17.0
	github.com/clipperhouse/displaywidth v0.11.0
	github.com/clipperhouse/uax29/v2 v2.7.0
	github.com/gofrs/flock v0.13.1
	github.com/rogpeppe/go-internal v1.14.1
	github.com/yuin/goldmark v1.8.7
	golang.org/x/image v0.47.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.45.0
	golang.org/x/text v0.43.0
)

require golang.org/x/tools v0.51.0 // indirect
