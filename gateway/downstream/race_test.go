//go:build race

package downstream

const raceDetector = true
