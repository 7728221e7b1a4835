package simd

// additiveWidthGeneric is the number of keys that are adjacent in a panel.
const additiveWidthGeneric = 8

func additiveExpGeneric(dst, x []float32, limit, factor float32) bool {
	inside := true
	for i, v := range x {
		if !(v >= -limit && v <= limit) {
			inside = false
			if v < 0 {
				v = -limit
			} else {
				v = limit
			}
		}
		dst[i] = exp32(2*v) * factor
	}
	return inside
}

func additiveKeysGeneric(panel, w []float32, n int) {
	for f, wf := range w {
		row := panel[f*2*additiveWidthGeneric:][:2*additiveWidthGeneric]
		for i, k := range row[:n] {
			g := exp32(-2*min(max(k, -additiveKeyLimit), additiveKeyLimit)) * additiveShift
			row[i], row[additiveWidthGeneric+i] = g, wf*g
		}
	}
}

func additiveTileGeneric(c []float32, cRow int, q *AdditiveQueries, i0, i1 int, k *AdditiveKeys, j0, j1 int) {
	for i := i0; i < i1; i++ {
		row := q.e[i*q.row:][:q.h]
		for j := j0; j < j1; j += additiveWidthGeneric {
			panel, out := k.panel(j), c[i*cRow+j-j0:][:min(additiveWidthGeneric, j1-j)]
			clear(out)
			for f, e := range row {
				g := panel[f*2*additiveWidthGeneric:][:len(out)]
				wg := panel[(2*f+1)*additiveWidthGeneric:][:len(out)]
				for n := range out {
					out[n] += wg[n] / (g[n] + e)
				}
			}
			for n, v := range out {
				out[n] = k.sum + float32(k.factor*v)
			}
		}
	}
}

func additiveTileGradGeneric(a *AdditiveKeysGrad, ds []float32, dsRow int, q *AdditiveQueries, i0, i1, j0, j1 int) {
	for i := i0; i < i1; i++ {
		e := q.e[i*q.row:][:a.h]
		dq := a.dqSum(i - i0)[:len(e)]
		dw := a.dwSum(i - i0)[:len(e)]
		for j := j0; j < j1; j++ {
			d := ds[i*dsRow+j-j0]
			key, dk := a.f[j*a.row:][:len(e)], a.dk[j*a.row:][:len(e)]
			for f, ef := range e {
				t := 1 - 1/(0.5+float32(ef*key[f]))
				g := float32(d * (1 - float32(t*t)))
				dq[f] += g
				dk[f] += g
				dw[f] += float32(d * t)
			}
		}
	}
}
