//go:build race

package train

// raceDetector says that the race detector is on: it makes sync.Pool drop items at
// random.
const raceDetector = true
