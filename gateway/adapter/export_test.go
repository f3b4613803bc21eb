package adapter

// RaceDetector says whether the tests run with it.
const RaceDetector = raceDetector
