//go:build !purego

#include "textflag.h"

// func pause()
TEXT ·pause(SB), NOSPLIT, $0-0
	MOVL $8, AX

loop:
	PAUSE
	SUBL $1, AX
	JNZ  loop
	RET
