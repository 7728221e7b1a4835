//go:build !purego

#include "textflag.h"

// func pause()
TEXT ·pause(SB), NOSPLIT, $0-0
	MOVL $100, AX
	PAUSE

// A host may stop a virtual processor that pauses without doing anything else.
loop:
	SUBL $1, AX
	JNZ  loop
	RET
