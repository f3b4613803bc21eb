//go:build !race

package downstream

const raceDetector = false
