package position

import (
	"cmp"
	"fmt"
	"math"
)

// lengthens reports whether a factor is finite and at least 1.
func lengthens(factor float64) bool { return factor >= 1 && !math.IsInf(factor, 1) }

// ScaleLinear divides all frequencies by a factor: position interpolation. Its
// "rope_type" is "linear".
//
// Source: Chen et al., "Extending Context Window of Large Language Models via
// Positional Interpolation", 2023, https://arxiv.org/abs/2306.15595.
func ScaleLinear(factor float64) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !lengthens(factor) {
			return 0, fmt.Errorf("ScaleLinear: factor %v, want at least 1", factor)
		}
		for i := range freqs {
			freqs[i] /= factor
		}
		return 1, nil
	}
}

// ScaleNTK raises the base for sequences of length positions, if they are longer than the trained
// positions, "max_position_embeddings": dynamic NTK. Its "rope_type" is "dynamic". Hugging Face
// recomputes the base for every length, but keys cached earlier keep their angles.
//
// Source: bloc97 and emozilla, 2023, as in Peng et al., "YaRN", 2023,
// https://arxiv.org/abs/2309.00071, section 3.3.
func ScaleNTK(factor float64, trained, length int) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !lengthens(factor) || trained < 1 || length < 1 {
			return 0, fmt.Errorf("ScaleNTK: factor %v, trained %d and length %d, want a factor of at least 1 and positive lengths", factor, trained, length)
		}
		// A base of base·r^(d/(d−2)) multiplies frequency i by r^(−2i/(d−2)).
		d := 2 * len(freqs)
		if length > trained && d > 2 {
			r := factor*float64(length)/float64(trained) - (factor - 1)
			for i := range freqs {
				freqs[i] *= math.Pow(r, -2*float64(i)/float64(d-2))
			}
		}
		return 1, nil
	}
}

// ScaleFixedNTK divides frequency i of vectors of size d by factor^((2i+2)/d), for sequences of all lengths: the highest
// one by little, the lowest one by the factor. It is a base of factor·base and, in addition, a division of all frequencies
// by factor^(2/d), as in Alibaba's GTE models, whose "type" of "rope_scaling" is "ntk".
//
// Source: Su, "Transformer upgrade road 10: RoPE is a β-based encoding", 2023, https://kexue.fm/archives/9706, eq. 6.
func ScaleFixedNTK(factor float64) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !lengthens(factor) {
			return 0, fmt.Errorf("ScaleFixedNTK: factor %v, want at least 1", factor)
		}
		for i := range freqs {
			freqs[i] *= math.Pow(factor, -float64(i+1)/float64(len(freqs)))
		}
		return 1, nil
	}
}

// ScaleProportional rotates only the first pairs of a vector, with the frequencies that they have
// in the whole vector, and leaves the other pairs unchanged, as in Gemma 4. Its "rope_type" is
// "proportional", and part is the "partial_rotary_factor". A smaller RoPEConfig.Size is
// different: it uses the frequencies of a smaller vector.
func ScaleProportional(part float64) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !(part >= 0 && part <= 1) {
			return 0, fmt.Errorf("ScaleProportional: part %v, want 0 to 1", part)
		}
		clear(freqs[int(part*float64(len(freqs))):])
		return 1, nil
	}
}

// YaRN are the parameters of ScaleYaRN. The zero values of all fields except Factor and Trained
// are the paper's.
type YaRN struct {
	// Factor is the ratio of the new length to the trained length: "factor", or, if that is null,
	// "max_position_embeddings" divided by Trained.
	Factor float64
	// Trained is the number of positions in training: "original_max_position_embeddings".
	Trained int
	// Fast and Slow are numbers of turns within Trained positions: frequencies with more than
	// Fast turns are unchanged, those with fewer than Slow are divided by Factor: "beta_fast" and
	// "beta_slow". 0 means 32 and 1.
	Fast, Slow float64
	// Attention is the factor of rotated vectors: "attention_factor". Nil means
	// 0.1·ln(Factor) + 1, or the factor from MScale and MScaleAllDim.
	Attention *float64
	// MScale and MScaleAllDim, if both are nonzero, set the factor of rotated vectors to
	// (0.1·MScale·ln(Factor) + 1)/(0.1·MScaleAllDim·ln(Factor) + 1): "mscale" and
	// "mscale_all_dim". DeepSeek's models also multiply the scale of the scores by the square of
	// that denominator; use DotScale for this.
	MScale, MScaleAllDim float64
	// Exact keeps the ends of the ramp between Fast and Slow exact, instead of rounding them
	// outwards to whole frequencies: "truncate" is false.
	Exact bool
}

// ScaleYaRN divides low frequencies by a factor, leaves high ones unchanged, and blends linearly
// in between. Its "rope_type" is "yarn".
//
// Source: Peng et al., "YaRN: Efficient Context Window Extension of Large Language
// Models", 2023, https://arxiv.org/abs/2309.00071, section 3.
func ScaleYaRN(y YaRN) RoPEScaling {
	return func(base float64, freqs []float64) (float64, error) {
		fast, slow := cmp.Or(y.Fast, 32), cmp.Or(y.Slow, 1)
		switch {
		case !lengthens(y.Factor):
			return 0, fmt.Errorf("ScaleYaRN: Factor %v, want at least 1", y.Factor)
		case y.Trained < 1:
			return 0, fmt.Errorf("ScaleYaRN: Trained (original_max_position_embeddings) %d, want at least 1", y.Trained)
		case !(slow > 0 && fast > slow):
			return 0, fmt.Errorf("ScaleYaRN: Fast (beta_fast) %v and Slow (beta_slow) %v, want Slow above 0 and Fast above Slow", fast, slow)
		case y.Attention != nil && !(*y.Attention >= 0):
			return 0, fmt.Errorf("ScaleYaRN: Attention (attention_factor) %v, want at least 0", *y.Attention)
		case !(y.MScale >= 0 && y.MScaleAllDim >= 0):
			return 0, fmt.Errorf("ScaleYaRN: MScale (mscale) %v and MScaleAllDim (mscale_all_dim) %v, want at least 0", y.MScale, y.MScaleAllDim)
		}
		d := float64(2 * len(freqs))
		// turns returns the (fractional) index of the frequency with n turns.
		turns := func(n float64) float64 {
			return d * math.Log(float64(y.Trained)/(n*2*math.Pi)) / (2 * math.Log(base))
		}
		low, high := turns(fast), turns(slow)
		if !y.Exact {
			low, high = math.Floor(low), math.Ceil(high)
		}
		low, high = max(low, 0), min(high, d-1)
		if low == high {
			high += 0.001 // avoids a division by 0: a step instead of a ramp
		}
		for i, f := range freqs {
			ramp := min(max((float64(i)-low)/(high-low), 0), 1)
			freqs[i] = float64(f/y.Factor*ramp) + float64(f*(1-ramp))
		}
		return y.attention(), nil
	}
}

// attention returns the factor of rotated vectors.
func (y YaRN) attention() float64 {
	scale := func(m float64) float64 { return float64(0.1*m*math.Log(y.Factor)) + 1 }
	switch {
	case y.Attention != nil:
		return *y.Attention
	case y.MScale != 0 && y.MScaleAllDim != 0:
		return scale(y.MScale) / scale(y.MScaleAllDim)
	}
	return scale(1)
}

// LongRoPE are the parameters of ScaleLongRoPE.
type LongRoPE struct {
	// Short and Long are the divisors of each frequency: Short for sequences of up to Trained
	// positions, Long for longer ones: "short_factor" and "long_factor".
	Short, Long []float64
	// Trained is the number of positions in training: "original_max_position_embeddings".
	Trained int
	// Length is the final length of the sequences, including generated tokens, because cached
	// keys keep the angles they were computed with.
	Length int
	// Factor is the ratio of the maximum length to the trained length: "factor", or, if there is
	// none, "max_position_embeddings" divided by Trained. It is required unless Attention is set.
	Factor float64
	// Attention is the factor of rotated vectors: "attention_factor". Nil means √(1 +
	// ln(Factor)/ln(Trained)), and 1 for a Factor of at most 1.
	Attention *float64
}

// ScaleLongRoPE divides each frequency by its own factor; the factors come from a search. Its
// "rope_type" is "longrope", or "su" in older files.
//
// Source: Ding et al., "LongRoPE", 2024, https://arxiv.org/abs/2402.13753; the factor of rotated
// vectors as in Phi-3.
func ScaleLongRoPE(l LongRoPE) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		by, name := l.Short, "Short (short_factor)"
		if l.Length > l.Trained {
			by, name = l.Long, "Long (long_factor)"
		}
		switch {
		case len(by) != len(freqs):
			return 0, fmt.Errorf("ScaleLongRoPE: %s has %d factors, want %d, one for each frequency", name, len(by), len(freqs))
		case l.Trained < 2 || l.Length < 1:
			return 0, fmt.Errorf("ScaleLongRoPE: Length %d and Trained (original_max_position_embeddings) %d, want Length at least 1 and Trained at least 2", l.Length, l.Trained)
		case l.Attention != nil && !(*l.Attention >= 0):
			return 0, fmt.Errorf("ScaleLongRoPE: Attention (attention_factor) %v, want at least 0", *l.Attention)
		case l.Attention == nil && !(l.Factor > 0):
			return 0, fmt.Errorf("ScaleLongRoPE: Factor %v without Attention, want a positive number", l.Factor)
		}
		for i, f := range by {
			if !(f > 0) {
				return 0, fmt.Errorf("ScaleLongRoPE: factor %d of %s is %v, want a positive number", i, name, f)
			}
			freqs[i] /= f
		}
		if l.Attention != nil {
			return *l.Attention, nil
		}
		return math.Sqrt(1 + math.Log(max(l.Factor, 1))/math.Log(float64(l.Trained))), nil
	}
}

// ScaleLlama3 divides frequencies by a factor if their wavelength exceeds trained/low positions,
// leaves them unchanged if it is below trained/high, and blends in between. Its "rope_type" is
// "llama3", and the arguments are "factor", "low_freq_factor", "high_freq_factor" and
// "original_max_position_embeddings".
//
// Source: Llama 3.1, as in Hugging Face's rope_type "llama3".
func ScaleLlama3(factor, low, high float64, trained int) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		switch {
		case !lengthens(factor):
			return 0, fmt.Errorf("ScaleLlama3: factor %v, want at least 1", factor)
		case !(low > 0) || !(high > low):
			return 0, fmt.Errorf("ScaleLlama3: low (low_freq_factor) %v and high (high_freq_factor) %v, want low above 0 and high above low", low, high)
		case trained < 1:
			return 0, fmt.Errorf("ScaleLlama3: trained %d, want at least 1", trained)
		}
		for i, f := range freqs {
			waves := float64(trained) * f / (2 * math.Pi) // number of waves within the trained positions
			switch {
			case waves < low:
				freqs[i] = f / factor
			case waves <= high:
				smooth := (waves - low) / (high - low)
				freqs[i] = float64((1-smooth)*f/factor) + float64(smooth*f)
			}
		}
		return 1, nil
	}
}
