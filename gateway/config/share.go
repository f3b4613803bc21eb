package config

import (
	"errors"
	"time"
)

// Share is a share of a duration, or a duration: one of the two.
type Share struct {
	Percent  float64 // 0 to 100
	Duration time.Duration
}

// Of returns the share of a whole.
func (s Share) Of(whole time.Duration) time.Duration {
	if s.Percent != 0 {
		return time.Duration(float64(whole) * s.Percent / 100)
	}
	return s.Duration
}

func (s *Share) parse(text string) error {
	if p, ok := parsePercent(text); ok {
		*s = Share{Percent: p}
		return nil
	}
	d, err := parseDuration(text)
	if err != nil {
		return errors.New("a share such as 20%, 100% at most, or a duration such as 2s is expected")
	}
	*s = Share{Duration: d}
	return nil
}

// SizeShare is a share of a size, or a size: one of the two.
type SizeShare struct {
	Percent float64 // 0 to 100
	Size    Size
}

// Of returns the share of a whole in bytes.
func (s SizeShare) Of(whole int64) int64 {
	if s.Percent != 0 {
		return int64(float64(whole) * s.Percent / 100)
	}
	return int64(s.Size)
}

func (s *SizeShare) parse(text string) error {
	if p, ok := parsePercent(text); ok && p > 0 {
		*s = SizeShare{Percent: p}
		return nil
	}
	n, err := parseSize(text)
	if err != nil || n == 0 {
		return errors.New("a share such as 25%, above 0% and 100% at most, or a size such as 1GiB is expected")
	}
	*s = SizeShare{Size: n}
	return nil
}
