//go:build race

package train

// raceDetector says that the race detector is on, under which pools of memory
// forget at random.
const raceDetector = true
