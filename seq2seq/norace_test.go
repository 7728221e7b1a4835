//go:build !race

package seq2seq

const raceDetector = false
