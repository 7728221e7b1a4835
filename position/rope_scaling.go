package position

import (
	"cmp"
	"fmt"
	"math"
)

// lengthens reports whether a factor makes sequences longer, or leaves them as they are.
func lengthens(factor float64) bool { return factor >= 1 && !math.IsInf(factor, 1) }

// ScaleLinear divides all frequencies by a factor: position interpolation. Its
// "rope_type" is "linear".
//
// Source: Chen et al., "Extending Context Window of Large Language Models via
// Positional Interpolation", 2023, https://arxiv.org/abs/2306.15595.
func ScaleLinear(factor float64) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !lengthens(factor) {
			return 0, fmt.Errorf("linear scaling by %v, want a factor of at least 1", factor)
		}
		for i := range freqs {
			freqs[i] /= factor
		}
		return 1, nil
	}
}

// ScaleNTK raises the base for sequences of length positions where trained were
// trained on, "max_position_embeddings": dynamic NTK. Its "rope_type" is "dynamic".
// Hugging Face computes it anew for every length; keys that have been cached before keep
// their angles.
//
// Source: bloc97 and emozilla, 2023, as in Peng et al., "YaRN", 2023,
// https://arxiv.org/abs/2309.00071, section 3.3.
func ScaleNTK(factor float64, trained, length int) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !lengthens(factor) || trained < 1 || length < 1 {
			return 0, fmt.Errorf("scaling by NTK by %v from %d positions to %d, want a factor of at least 1 and positive lengths", factor, trained, length)
		}
		// base·r^(d/(d−2)) in place of base multiplies frequency i by
		// r^(−2i/(d−2)).
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

// ScaleProportional turns only a part of the pairs of a vector, the first ones, with the
// frequencies that they have among all of them, and leaves the others as they are: Gemma
// 4. Its "rope_type" is "proportional", and part the "partial_rotary_factor". It differs
// from a smaller RoPEConfig.Size, of which the frequencies are those of a smaller vector.
func ScaleProportional(part float64) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !(part >= 0 && part <= 1) {
			return 0, fmt.Errorf("RoPE for a part of %v of the pairs, want 0 to 1", part)
		}
		clear(freqs[int(part*float64(len(freqs))):])
		return 1, nil
	}
}

// YaRN is the parameters of ScaleYaRN. The zero value of all but Factor and Trained is
// the paper's.
type YaRN struct {
	// Factor is by how much sequences are longer than trained on: "factor", or, where
	// that is null, "max_position_embeddings" divided by Trained.
	Factor float64
	// Trained is how many positions were trained on: "original_max_position_embeddings".
	Trained int
	// Fast and Slow are after how many turns in Trained positions a frequency is
	// left alone, and is divided by Factor: "beta_fast" and "beta_slow". 0 means 32 and 1.
	Fast, Slow float64
	// Attention is the factor of turned vectors: "attention_factor". 0 means
	// 0.1·ln(Factor) + 1, or what MScale says.
	Attention float64
	// MScale and MScaleAllDim, if neither is 0, make the factor of turned vectors
	// (0.1·MScale·ln(Factor) + 1)/(0.1·MScaleAllDim·ln(Factor) + 1): "mscale" and
	// "mscale_all_dim". DeepSeek's models multiply the scale of the scores by the square
	// of that denominator besides, which is for DotScale to do.
	MScale, MScaleAllDim float64
	// Exact leaves the ends of the ramp between Fast and Slow where they are, instead
	// of rounding them outwards to whole frequencies: "truncate" is false.
	Exact bool
}

// ScaleYaRN divides slow frequencies by a factor, leaves fast ones alone, and blends
// linearly in between. Its "rope_type" is "yarn".
//
// Source: Peng et al., "YaRN: Efficient Context Window Extension of Large Language
// Models", 2023, https://arxiv.org/abs/2309.00071, section 3.
func ScaleYaRN(y YaRN) RoPEScaling {
	return func(base float64, freqs []float64) (float64, error) {
		fast, slow := cmp.Or(y.Fast, 32), cmp.Or(y.Slow, 1)
		if !lengthens(y.Factor) || y.Trained < 1 || !(slow > 0 && fast > slow) || !(y.Attention >= 0 && y.MScale >= 0 && y.MScaleAllDim >= 0) {
			return 0, fmt.Errorf("scaling %+v, want a factor of at least 1, positive Trained, Fast above Slow and no negative number", y)
		}
		d := float64(2 * len(freqs))
		// The number of the frequency that makes a number of turns.
		turns := func(n float64) float64 {
			return d * math.Log(float64(y.Trained)/(n*2*math.Pi)) / (2 * math.Log(base))
		}
		low, high := turns(fast), turns(slow)
		if !y.Exact {
			low, high = math.Floor(low), math.Ceil(high)
		}
		low, high = max(low, 0), min(high, d-1)
		if low == high {
			high += 0.001 // a step
		}
		for i, f := range freqs {
			ramp := min(max((float64(i)-low)/(high-low), 0), 1)
			freqs[i] = float64(f/y.Factor*ramp) + float64(f*(1-ramp))
		}
		return y.attention(), nil
	}
}

// attention returns the factor of turned vectors.
func (y YaRN) attention() float64 {
	scale := func(m float64) float64 { return float64(0.1*m*math.Log(y.Factor)) + 1 }
	switch {
	case y.Attention != 0:
		return y.Attention
	case y.MScale != 0 && y.MScaleAllDim != 0:
		return scale(y.MScale) / scale(y.MScaleAllDim)
	}
	return scale(1)
}

// LongRoPE is the parameters of ScaleLongRoPE.
type LongRoPE struct {
	// Short and Long are by what each frequency is divided in sequences of up to Trained
	// positions, and in longer ones: "short_factor" and "long_factor".
	Short, Long []float64
	// Trained is how many positions were trained on: "original_max_position_embeddings".
	Trained int
	// Length is how long the sequences are that are to be served. Cached keys keep the
	// angles that they have got, so it is the length in the end.
	Length int
	// Factor is by how much sequences may be longer than trained on: "factor", or, where
	// there is none, "max_position_embeddings" divided by Trained. It is needed unless
	// Attention is given.
	Factor float64
	// Attention is the factor of turned vectors: "attention_factor". 0 means
	// √(1 + ln(Factor)/ln(Trained)), and 1 for a Factor of at most 1.
	Attention float64
}

// ScaleLongRoPE divides each frequency by a factor of its own, which were searched for.
// Its "rope_type" is "longrope", or "su" in older files.
//
// Source: Ding et al., "LongRoPE", 2024, https://arxiv.org/abs/2402.13753; the factor of
// turned vectors as in Phi-3.
func ScaleLongRoPE(l LongRoPE) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		by := l.Short
		if l.Length > l.Trained {
			by = l.Long
		}
		switch {
		case len(by) != len(freqs):
			return 0, fmt.Errorf("LongRoPE has %d factors, want %d, one for each frequency", len(by), len(freqs))
		case l.Trained < 2 || l.Length < 1:
			return 0, fmt.Errorf("LongRoPE for %d positions, of which %d were trained, want both positive", l.Length, l.Trained)
		case !(l.Attention >= 0) || l.Attention == 0 && !(l.Factor > 0):
			return 0, fmt.Errorf("LongRoPE with factor %v and attention %v, want a positive number", l.Factor, l.Attention)
		}
		for i, f := range by {
			if !(f > 0) {
				return 0, fmt.Errorf("LongRoPE factor %d is %v, want a positive number", i, f)
			}
			freqs[i] /= f
		}
		if l.Attention != 0 {
			return l.Attention, nil
		}
		return math.Sqrt(1 + math.Log(max(l.Factor, 1))/math.Log(float64(l.Trained))), nil
	}
}

// ScaleLlama3 divides frequencies by a factor if their wave is longer than trained/low
// positions, leaves them if it is shorter than trained/high, and blends in
// between. Its "rope_type" is "llama3", and the arguments are "factor",
// "low_freq_factor", "high_freq_factor" and "original_max_position_embeddings".
//
// Source: Llama 3.1, as in Hugging Face's rope_type "llama3".
func ScaleLlama3(factor, low, high float64, trained int) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !lengthens(factor) || !(low > 0) || !(high > low) || trained < 1 {
			return 0, fmt.Errorf("scaling of Llama 3 by %v between %v and %v of %d positions, want a factor of at least 1, 0 < low < high and positive trained", factor, low, high, trained)
		}
		for i, f := range freqs {
			waves := float64(trained) * f / (2 * math.Pi) // in the trained positions
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
