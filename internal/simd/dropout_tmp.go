package simd

func Dropout(dst, x []float32, key uint64, first int, threshold uint32, keep float32) {
	for i, v := range x {
		z := key + uint64(first+i)*0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		dst[i] = 0
		if uint32(z>>32) >= threshold {
			dst[i] = v * keep
		}
	}
}
