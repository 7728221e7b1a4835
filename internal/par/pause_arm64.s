//go:build !purego

#include "textflag.h"

// func pause()
TEXT ·pause(SB), NOSPLIT, $0-0
	MOVW $100, R0

loop:
	YIELD
	SUBSW $1, R0, R0
	BNE  loop
	RET
