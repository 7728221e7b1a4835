module github.com/attn-go/attn

go 1.26
