//go:build race

package tensor_test

// raceDetector says that the race detector is on. It makes pools of memory drop entries at random.
const raceDetector = true
