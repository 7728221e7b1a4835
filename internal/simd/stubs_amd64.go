//go:build amd64 && !purego

package simd

//go:generate go -C _asm run . -out ../simd_amd64.s

// The kernels below are in simd_amd64.s, which the generator in _asm writes.
// Each computes what the function of the same name that ends in Generic does,
// on n elements; but for gemm, gemvTransposed and transpose, which gemm_amd64.go
// explains.

//go:noescape
func gemm1AVX512(t *tileArgs)

//go:noescape
func gemm2AVX512(t *tileArgs)

//go:noescape
func gemm3AVX512(t *tileArgs)

//go:noescape
func gemm4AVX512(t *tileArgs)

//go:noescape
func axpyAVX512(a float32, x, y *float32, n int)

//go:noescape
func scaleAVX512(dst *float32, a float32, x *float32, n int)

//go:noescape
func scaleShiftAVX512(dst *float32, a float32, x *float32, b float32, n int)

//go:noescape
func addAVX512(dst, x, y *float32, n int)

//go:noescape
func mulAVX512(dst, x, y *float32, n int)

//go:noescape
func mulAddAVX512(dst, x, y *float32, n int)

//go:noescape
func sumAVX512(x *float32, n int) float32

//go:noescape
func dotAVX512(x, y *float32, n int) float32

//go:noescape
func maxAVX512(x *float32, n int) float32

//go:noescape
func finiteAVX512(x *float32, n int) bool

//go:noescape
func expAVX512(dst, x *float32, n int)

//go:noescape
func expSumAVX512(dst, x *float32, n int, shift float32) float32

//go:noescape
func sigmoidAVX512(dst, x *float32, n int)

//go:noescape
func tanhAVX512(dst, x *float32, n int)

//go:noescape
func geluAVX512(dst, x *float32, n int)

//go:noescape
func geluGradAVX512(dst, x *float32, n int)

//go:noescape
func additiveScoresAVX512(dst, q, k, w *float32, nk, h int)

//go:noescape
func additiveGradAVX512(dq, dk, dw, ds, q, k, w *float32, nk, h int)

//go:noescape
func additiveExpAVX512(dst, x *float32, n int, limit, factor float32) bool

//go:noescape
func additiveKeysAVX512(panel, w *float32, h, vectors int)

//go:noescape
func additiveTile1AVX512(t *scoreArgs)

//go:noescape
func additiveTile2AVX512(t *scoreArgs)

//go:noescape
func additiveTileGradAVX512(t *gradArgs)

//go:noescape
func adamWAVX512(p, grad, m, v *float32, n int, s *adamScalars)

//go:noescape
func gemvTransposedAVX512(t *tileArgs)

//go:noescape
func transposeAVX512(dst *float32, dstRow int, src *float32, srcRow, rows, depth int)

//go:noescape
func gemm1AVX2(t *tileArgs)

//go:noescape
func gemm1maskedAVX2(t *tileArgs)

//go:noescape
func gemm2AVX2(t *tileArgs)

//go:noescape
func gemm2maskedAVX2(t *tileArgs)

//go:noescape
func axpyAVX2(a float32, x, y *float32, n int)

//go:noescape
func scaleAVX2(dst *float32, a float32, x *float32, n int)

//go:noescape
func scaleShiftAVX2(dst *float32, a float32, x *float32, b float32, n int)

//go:noescape
func addAVX2(dst, x, y *float32, n int)

//go:noescape
func mulAVX2(dst, x, y *float32, n int)

//go:noescape
func mulAddAVX2(dst, x, y *float32, n int)

//go:noescape
func sumAVX2(x *float32, n int) float32

//go:noescape
func dotAVX2(x, y *float32, n int) float32

//go:noescape
func maxAVX2(x *float32, n int) float32

//go:noescape
func finiteAVX2(x *float32, n int) bool

//go:noescape
func expAVX2(dst, x *float32, n int)

//go:noescape
func expSumAVX2(dst, x *float32, n int, shift float32) float32

//go:noescape
func sigmoidAVX2(dst, x *float32, n int)

//go:noescape
func tanhAVX2(dst, x *float32, n int)

//go:noescape
func geluAVX2(dst, x *float32, n int)

//go:noescape
func geluGradAVX2(dst, x *float32, n int)

//go:noescape
func additiveScoresAVX2(dst, q, k, w *float32, nk, h int)

//go:noescape
func additiveGradAVX2(dq, dk, dw, ds, q, k, w *float32, nk, h int)

//go:noescape
func additiveExpAVX2(dst, x *float32, n int, limit, factor float32) bool

//go:noescape
func additiveKeysAVX2(panel, w *float32, h, vectors int)

//go:noescape
func additiveTile1AVX2(t *scoreArgs)

//go:noescape
func additiveTileGradAVX2(t *gradArgs)

//go:noescape
func adamWAVX2(p, grad, m, v *float32, n int, s *adamScalars)

//go:noescape
func gemvTransposedAVX2(t *tileArgs)

//go:noescape
func transposeAVX2(dst *float32, dstRow int, src *float32, srcRow, rows, depth int)

//go:noescape
func rowMaxAVX512(dst, x *float32, row, rows, n int)

//go:noescape
func powerRowsAVX512(x *float32, row, rows, n int, c float32, shift, sum *float32)

//go:noescape
func weightRowsAVX512(x *float32, row, rows, n int, c float32, shift, factor *float32)

//go:noescape
func gradRowsAVX512(dw, w *float32, row, rows, n int, d *float32, factor float32)

//go:noescape
func scaleRowsAVX512(dst *float32, dstRow int, src *float32, srcRow, rows, n int, factor *float32)

//go:noescape
func hideAVX512(x *float32, seen *bool, n int)

//go:noescape
func rowMaxAVX2(dst, x *float32, row, rows, n int)

//go:noescape
func powerRowsAVX2(x *float32, row, rows, n int, c float32, shift, sum *float32)

//go:noescape
func weightRowsAVX2(x *float32, row, rows, n int, c float32, shift, factor *float32)

//go:noescape
func gradRowsAVX2(dw, w *float32, row, rows, n int, d *float32, factor float32)

//go:noescape
func scaleRowsAVX2(dst *float32, dstRow int, src *float32, srcRow, rows, n int, factor *float32)

//go:noescape
func hideAVX2(x *float32, seen *bool, n int)

func fmaLoopAVX512(n int)

//go:noescape
func fmaLoopAVX2(n int)

func dropoutAVX512(dst, x *float32, n int, key uint64, threshold uint32, keep float32)

//go:noescape
func dropoutAddAVX512(dst, x, y *float32, n int, key uint64, threshold uint32, keep float32)

//go:noescape
func dropoutAVX2(dst, x *float32, n int, key uint64, threshold uint32, keep float32)

//go:noescape
func dropoutAddAVX2(dst, x, y *float32, n int, key uint64, threshold uint32, keep float32)

//go:noescape
func reluAVX512(dst, x *float32, n int)

//go:noescape
func reluGradAVX512(dx, dy, x *float32, n int)

//go:noescape
func softmaxGradAVX512(dx, dy, y *float32, n int, mean float32)

//go:noescape
func normAVX512(dst, x, gain, shift *float32, n int, mean, inv float32)

//go:noescape
func normGradAVX512(dx, dy, x, gain *float32, n int, mean, inv, flat, along float32)

//go:noescape
func softmaxMeanAVX512(dy, y *float32, n int) float32

//go:noescape
func sumSquaresAboutAVX512(x *float32, n int, mean float32) float32

//go:noescape
func normSumsAVX512(dy, x, gain *float32, n int, mean, inv float32) (flat, along float32)

//go:noescape
func normGainsAVX512(dgain, dshift, dy, x *float32, n int, mean, inv *float32, rows, stride int)

//go:noescape
func sumRowsAVX512(dst, x *float32, n, rows, stride int)

//go:noescape
func reluAVX2(dst, x *float32, n int)

//go:noescape
func reluGradAVX2(dx, dy, x *float32, n int)

//go:noescape
func softmaxGradAVX2(dx, dy, y *float32, n int, mean float32)

//go:noescape
func normAVX2(dst, x, gain, shift *float32, n int, mean, inv float32)

//go:noescape
func normGradAVX2(dx, dy, x, gain *float32, n int, mean, inv, flat, along float32)

//go:noescape
func softmaxMeanAVX2(dy, y *float32, n int) float32

//go:noescape
func sumSquaresAboutAVX2(x *float32, n int, mean float32) float32

//go:noescape
func normSumsAVX2(dy, x, gain *float32, n int, mean, inv float32) (flat, along float32)

//go:noescape
func normGainsAVX2(dgain, dshift, dy, x *float32, n int, mean, inv *float32, rows, stride int)

//go:noescape
func sumRowsAVX2(dst, x *float32, n, rows, stride int)

//go:noescape
func copyRowsAVX512(dst *float32, dstStride int, x *float32, n, rows, stride int)

//go:noescape
func addRowsAVX512(dst *float32, dstStride int, x *float32, n, rows, stride int)

//go:noescape
func copyRowsAVX2(dst *float32, dstStride int, x *float32, n, rows, stride int)

//go:noescape
func addRowsAVX2(dst *float32, dstStride int, x *float32, n, rows, stride int)

//go:noescape
func layerNormAVX512(dst, x, gain, shift, mean, inv *float32, d, rows int, size, eps float32)

//go:noescape
func layerNormAVX2(dst, x, gain, shift, mean, inv *float32, d, rows int, size, eps float32)

//go:noescape
func layerNormGradAVX512(dx, dy, x, gain, mean, inv *float32, d, rows int, size float32)

//go:noescape
func layerNormGradAVX2(dx, dy, x, gain, mean, inv *float32, d, rows int, size float32)

//go:noescape
func fromBFloat16AVX512(dst *float32, x *uint16, n int)

//go:noescape
func fromBFloat16AVX2(dst *float32, x *uint16, n int)

//go:noescape
func fromInt8AVX512(dst *float32, x *int8, n int)

//go:noescape
func fromInt8AVX2(dst *float32, x *int8, n int)

//go:noescape
func gemmBFloat16AVX512(t *tileArgs)

//go:noescape
func gemmInt8AVX512(t *tileArgs)

//go:noescape
func gemmBFloat16AVX2(t *tileArgs)

//go:noescape
func gemmInt8AVX2(t *tileArgs)
