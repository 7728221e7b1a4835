// Package linear is attention without a softmax: linear attention, decay and the delta rule. A head has a state, a sum
// of key ⊗ value over the tokens so far, which a query reads. So a token costs the same after any number of others, and
// a text of any length has a state of one size.
//
//	out := linear.Attend(tape, q, k, v, linear.Options{Decay: decay, Beta: beta}).Out
//
// What is given decides the rule, with the names of ONNX's operator LinearAttention:
//
//	linear        neither             S ← S + k⊗v                             linear attention
//	gated         Decay               S ← e^g·S + k⊗v                         RetNet, Mamba-2, gated linear attention
//	delta         Beta                S ← S + β·k⊗(v − Sᵀk)                   DeltaNet
//	gated_delta   Decay and Beta      S ← e^g·S + β·k⊗(v − e^g·Sᵀk)           Gated DeltaNet, Kimi Delta Attention
//
// Results have the same bits for any number of threads, in any batch, with any padding, and for any pieces of a
// sequence: token by token with a State, in parts, or all at once.
package linear
